package wire_test

import (
	"fmt"

	"farflash/flash/wire"
)

// A five-byte Write, framed and deframed.
func Example() {
	payload := []byte("hello")
	framer := wire.Framer{CRC: true}
	n := wire.TaggedLength + len(payload)
	frame := framer.Begin(make([]byte, 0, n+framer.Overhead(n)), n)
	segment := frame[len(frame)-n:]
	wire.TaggedFields{Op: wire.Write, Last: true, STag: 0x12345600, Offset: 4096}.Put(segment)
	copy(segment[wire.TaggedLength:], payload)
	frame = framer.End(frame)
	fmt.Printf("%x\n", frame)

	deframer := wire.Deframer{CRC: true}
	got, _, err := deframer.Next(frame)
	fmt.Println(got.Op(), wire.Tagged(got).Offset(), string(got.Payload()), err)
	// Output:
	// 0013c14012345600000000000000100068656c6c6f000000e800bc31
	// Write 4096 hello <nil>
}
