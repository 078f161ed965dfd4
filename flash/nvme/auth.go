package nvme

import (
	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/wire"
)

// maxProof bounds the messages of authentication, in bytes. The longest has a public value of 1024.
const maxProof = 4096

// proves begins the authentication of the admin queue's host. Until it ends, other commands are refused.
func (t *Target) proves(q *Queue, k chap.Keys, i wire.Identity) {
	q.auth = chap.NewController(k, chap.Names{Host: i.Host, Subsystem: i.Subsystem}, t.cfg.Random)
}

// admitProof validates a command of authentication with n bytes of data.
func (q *Queue) admitProof(c *command, n uint32) wire.Status {
	switch {
	case q.state != proving:
		return wire.InvalidOpcode | wire.NoRetry
	case q.computing:
		return wire.SequenceError
	case !c.sqe.Proof():
		return wire.InvalidField | wire.NoRetry
	case n == 0 || n > maxProof:
		return wire.WrongSGLLength | wire.NoRetry
	}
	if c.sqe.FabricsType() == wire.AuthSend {
		c.gather, c.length = true, n
	}
	return 0
}

// hear takes a message of the host.
func (q *Queue) hear(c *command) {
	q.auth.Receive(c.data.B[:c.size])
	q.respond(c)
	if q.auth.Done() {
		q.proved()
	}
}

// say makes a task of the answer, because it takes long to compute.
func (q *Queue) say(c *command) {
	t := q.take(c)
	auth := q.auth
	t.compute = func() { t.said = auth.Send() }
	c.tasks++
	q.computing = true
	q.starts = append(q.starts, t)
}

// said sends the answer that was computed. If the exchange has failed, the connection ends after it.
func (q *Queue) said(t *Task) {
	c := t.command
	q.computing = false
	q.give(c, t.said, int(c.sqe.SGL().Length))
	q.recycle(t)
	switch err := q.auth.Err(); {
	case err != nil:
		q.leaving, q.why = true, err
	case q.auth.Done():
		q.proved()
	}
}

// proved lets the host use the controller.
func (q *Queue) proved() {
	q.state, q.auth = serving, nil
	q.controller.proved.Store(true)
}
