package nbd

import (
	"bytes"
	"slices"
	"testing"
)

// TestNumbers compares the constants that client and server share in the other tests with the numbers in the protocol
// document.
func TestNumbers(t *testing.T) {
	for _, x := range []struct {
		what     string
		is, want []uint64
	}{
		{"magic numbers", []uint64{magicServer, magicOption, magicReply, magicRequest, magicSimple, magicStructured},
			[]uint64{
				0x4e42444d41474943, 0x49484156454f5054, 0x3e889045565a9, 0x25609513, 0x67446698, 0x668e33ef,
			}},
		{"flags of the handshake", []uint64{FlagFixedNewstyle, FlagNoZeroes}, []uint64{1, 2}},
		{"options", []uint64{
			uint64(OptExportName), uint64(OptAbort), uint64(OptList), uint64(OptStartTLS), uint64(OptInfo),
			uint64(OptGo), uint64(OptStructuredReply), uint64(OptListMetaContext),
			uint64(OptSetMetaContext),
		}, []uint64{1, 2, 3, 5, 6, 7, 8, 9, 10}},
		{"replies", []uint64{uint64(ReplyAck), uint64(ReplyServer), uint64(ReplyInfo), uint64(ReplyMetaContext)},
			[]uint64{1, 2, 3, 4}},
		{"replies that are errors", []uint64{
			uint64(ReplyUnsupported), uint64(ReplyPolicy), uint64(ReplyInvalid), uint64(ReplyTLSRequired),
			uint64(ReplyUnknown), uint64(ReplyShutdown), uint64(ReplyTooBig),
		}, []uint64{0x80000001, 0x80000002, 0x80000003, 0x80000005, 0x80000006, 0x80000007, 0x80000009}},
		{"kinds of information", []uint64{InfoExport, InfoName, InfoDescription, InfoBlockSize}, []uint64{0, 1, 2, 3}},
		{"flags of exports", []uint64{
			FlagHasFlags, FlagReadOnly, FlagFlush, FlagFUA, FlagTrim, FlagZeroes, FlagDF, FlagMultiConn, FlagCache,
			FlagFastZeroes,
		}, []uint64{1, 2, 4, 8, 32, 64, 128, 256, 1024, 2048}},
		{"commands", []uint64{
			uint64(CmdRead), uint64(CmdWrite), uint64(CmdDisconnect), uint64(CmdFlush), uint64(CmdTrim),
			uint64(CmdCache), uint64(CmdWriteZeroes), uint64(CmdBlockStatus),
		}, []uint64{0, 1, 2, 3, 4, 5, 6, 7}},
		{"flags of commands", []uint64{CmdFUA, CmdNoHole, CmdDF, CmdOne, CmdFastZero}, []uint64{1, 2, 4, 8, 16}},
		{"chunks", []uint64{ChunkDone, ChunkNone, ChunkData, ChunkHole, ChunkStatus, ChunkError, ChunkErrorOffset},
			[]uint64{1, 0, 1, 2, 5, 32769, 32770}},
		{"states", []uint64{StateHole, StateZero}, []uint64{1, 2}},
		{"errors", []uint64{
			uint64(EPERM), uint64(EIO), uint64(ENOMEM), uint64(EINVAL), uint64(ENOSPC), uint64(EOVERFLOW),
			uint64(ENOTSUP), uint64(ESHUTDOWN),
		}, []uint64{1, 5, 12, 22, 28, 75, 95, 108}},
		{"sizes", []uint64{greetingSize, optionSize, replySize, requestSize, simpleSize, structuredSize, exportSize,
			exportPad, maxString}, []uint64{18, 16, 20, 28, 16, 20, 10, 124, 4096}},
		{"limits", []uint64{Window, MaxPayload, maxWaste, maxOption, maxSkip, maxList},
			[]uint64{262144, 33554432, 67108864, 65536, 1048576, 1048576}},
	} {
		if !slices.Equal(x.is, x.want) {
			t.Errorf("%s are %d, not %d", x.what, x.is, x.want)
		}
	}
}

// TestHeaders verifies the position of each header field, written and read.
func TestHeaders(t *testing.T) {
	const option, reply = "IHAVEOPT\x00\x00\x00\x07\x00\x00\x00\x02ab",
		"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x07\x80\x00\x00\x06\x00\x00\x00\x02ab"
	const request = "\x25\x60\x95\x13\x00\x11\x00\x06\x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14\x15\x16\x17\x18\x21\x22\x23\x24"
	const simple = "\x67\x44\x66\x98\x00\x00\x00\x5f\x01\x02\x03\x04\x05\x06\x07\x08"
	const chunk = "\x66\x8e\x33\xef\x00\x01\x80\x02\x01\x02\x03\x04\x05\x06\x07\x08\x21\x22\x23\x24"
	const cookie, offset, length = 0x0102030405060708, 0x1112131415161718, 0x21222324
	for _, x := range []struct {
		is   []byte
		want string
	}{
		{AppendOption([]byte("."), OptGo, []byte("ab")), "." + option},
		{appendReply([]byte("."), OptGo, ReplyUnknown, []byte("ab")), "." + reply},
		{AppendRequest([]byte("."), CmdFUA|CmdFastZero, CmdWriteZeroes, cookie, offset, length), "." + request},
		{appendSimple([]byte("."), ENOTSUP, cookie), "." + simple},
		{appendChunk([]byte("."), ChunkDone, ChunkErrorOffset, cookie, length), "." + chunk},
	} {
		if !bytes.Equal(x.is, []byte(x.want)) {
			t.Errorf("% x is written, not % x", x.is, x.want)
		}
	}
	if h := optionHeader(option); h.magic() != magicOption || h.option() != OptGo || h.length() != 2 {
		t.Errorf("an option is read as %d of %d bytes", h.option(), h.length())
	}
	if h := ReplyHeader(reply); h.Magic() != magicReply || h.Option() != OptGo || h.Reply() != ReplyUnknown ||
		h.Length() != 2 {
		t.Errorf("a reply is read as %#x to %d of %d bytes", h.Reply(), h.Option(), h.Length())
	}
	if h := requestHeader(request); h.magic() != magicRequest || h.flags() != 0x11 || h.command() != CmdWriteZeroes ||
		h.cookie() != cookie || h.offset() != offset || h.length() != length {
		t.Errorf("a request is read as %d, flags %#x, of %#x: %#x bytes at %#x", h.command(), h.flags(), h.cookie(),
			h.length(), h.offset())
	}
	if h := SimpleHeader(simple); !h.Valid() || h.Error() != ENOTSUP || h.Cookie() != cookie {
		t.Errorf("a simple reply is read as valid %v, of %#x: %v", h.Valid(), h.Cookie(), h.Error())
	}
	if h := ChunkHeader(chunk); !h.Valid() || h.Flags() != ChunkDone || h.Type() != ChunkErrorOffset ||
		h.Cookie() != cookie || h.Length() != length {
		t.Errorf("a chunk is read as valid %v, of %#x: type %d, flags %d, %#x bytes", h.Valid(), h.Cookie(), h.Type(),
			h.Flags(), h.Length())
	}
	if SimpleHeader(chunk).Valid() || ChunkHeader(simple).Valid() {
		t.Error("one kind of reply is taken for the other")
	}
}

// TestErrors verifies that every error of the protocol has a name and that unknown ones show their number.
func TestErrors(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range []Errno{EPERM, EIO, ENOMEM, EINVAL, ENOSPC, EOVERFLOW, ENOTSUP, ESHUTDOWN} {
		if s := e.Error(); seen[s] || s != "nbd: "+errnoNames[e] || errnoNames[e] == "" {
			t.Errorf("error %d is %q", uint32(e), s)
		}
		seen[e.Error()] = true
	}
	if s := Errno(77).Error(); s != "nbd: error 77" {
		t.Errorf("an error that the protocol does not have is %q", s)
	}
	for r, failed := range map[Reply]bool{ReplyAck: false, ReplyMetaContext: false, ReplyUnsupported: true,
		ReplyTooBig: true} {
		if r.Failed() != failed {
			t.Errorf("reply %#x has failed: %v", uint32(r), r.Failed())
		}
	}
}
