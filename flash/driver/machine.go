package driver

// Receiver consumes what a connection receives.
type Receiver interface {
	// Input consumes received bytes and returns the number consumed. The driver passes the remainder again with more
	// bytes, or once the machine is Ready again.
	Input(b []byte) int
	// Pending is the number of bytes still to be received of a command or PDU whose header is consumed; 0 between them.
	Pending() int
	// Sink returns memory into which the next bytes can be read directly, or nil. The driver then calls Sunk with the
	// number of bytes read. This saves a copy of long payloads.
	Sink() []byte
	// Sunk reports how many bytes were read into Sink.
	Sunk(n int)
}

// Sender has the output of a connection.
type Sender interface {
	// Vectors appends the output, at most `most` slices.
	Vectors(into [][]byte, most int) [][]byte
	// Sent reports that n bytes of Vectors have been sent.
	Sent(n int)
	// Detach copies pending output out of memory that is lent for it, so that a client that does not read cannot hold
	// up others.
	Detach()
}

// Worker issues tasks of type T.
type Worker[T any] interface {
	// Starts appends the tasks to start, and forgets them.
	Starts(into []T) []T
	// Finish takes back a task that is done.
	Finish(t T)
	// Drained reports that every command that was received completely is answered.
	Drained() bool
	// Over reports that the client has disconnected and everything is answered.
	Over() bool
}

// Machine is the state machine of a connection. Calls are serialized.
type Machine[T any] interface {
	Receiver
	Sender
	Worker[T]
	// Ready reports that more input is of use. If it is not, a task that finishes or output that is sent may change
	// that, unless the machine has failed or the client has taken its leave.
	Ready() bool
	// Err returns the reason why the connection must be closed, or nil. What Vectors still has is sent before, as far
	// as the client takes it without delay.
	Err() error
	// Fail ends the machine and releases all pending output. Tasks that were started must still be passed to Finish.
	Fail(err error)
}
