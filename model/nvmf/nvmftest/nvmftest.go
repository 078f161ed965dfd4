package nvmftest

import (
	"errors"
	"testing"

	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Subject is a network under test.
type Subject struct {
	Fabric nvmf.Fabric
	Engine *sim.Engine
	Nodes  []int32 // three or more that can send to each other
	// Persistent reports that queue pairs can be opened and reused, as nvmf.Fabric requires; a network with a queue
	// pair per message is only a Chooser.
	Persistent bool
}

// Conform tests that the networks that fresh makes satisfy the contract of nvmf.Fabric, and those of nvmf.Chooser,
// nvmf.Reader and nvmf.Pooler if they implement them. Each call of fresh must return an idle network that reports to
// sink.
func Conform(t *testing.T, fresh func(t *testing.T, sink fabric.Sink) Subject) {
	for _, c := range []struct {
		name string
		test func(*session)
	}{
		{"what cannot be", (*session).refused},
		{"each message once, in order", (*session).inOrder},
		{"posting from inside", (*session).chain},
		{"numbers", (*session).numbers},
		{"choosing", (*session).chosen},
		{"answering", (*session).answered},
		{"answers wait for no send queue", (*session).beside},
		{"shared receives", (*session).shared},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &session{t: t, under: map[int32]*letter{}}
			s.Subject = fresh(t, s)
			c.test(s)
		})
	}
}

// letter is a message as seen by its owner.
type letter struct {
	posted    sim.Time
	order     int // position in its queue pair; -1 if the network chose the queue pair
	pair      fabric.QP
	delivered bool
}

// session is one network and the messages posted on it.
type session struct {
	t *testing.T
	Subject
	under     map[int32]*letter
	last      map[fabric.QP]int // the last message delivered on each queue pair
	posted    map[fabric.QP]int
	posting   bool
	keep      bool // do not forget acknowledged messages
	kept      []int32
	delivered int
	acked     int
	after     func(m int32)
}

func (s *session) open(src, dst int) fabric.QP {
	s.t.Helper()
	if !s.Persistent {
		s.t.Skip("queue pairs do not persist")
	}
	q, err := s.Fabric.Open(s.Nodes[src], s.Nodes[dst], 3)
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}

func (s *session) post(q fabric.QP, size units.Bytes) {
	s.t.Helper()
	s.send(q, func() (int32, error) { return s.Fabric.Post(q, size) })
}

// send posts a message on a queue pair with post.
func (s *session) send(q fabric.QP, post func() (int32, error)) {
	s.t.Helper()
	if s.posted == nil {
		s.posted, s.last = map[fabric.QP]int{}, map[fabric.QP]int{}
	}
	s.posting = true
	m, err := post()
	s.posting = false
	s.note(m, err, letter{posted: s.Engine.Now(), pair: q, order: s.posted[q] + 1})
	s.posted[q]++
}

func (s *session) note(m int32, err error, l letter) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	if s.under[m] != nil {
		s.t.Fatalf("message %d is under way, and its number is given to another", m)
	}
	s.under[m] = &l
}

// Delivered implements fabric.Sink.
func (s *session) Delivered(m int32) {
	l := s.under[m]
	if s.posting {
		s.t.Errorf("message %d was delivered inside Post", m)
	}
	if l == nil || l.delivered {
		s.t.Errorf("message %d was delivered, but is not under way", m)
		return
	}
	l.delivered = true
	s.delivered++
	if l.order >= 0 {
		if s.last[l.pair] != l.order-1 {
			s.t.Errorf("queue pair %d: message %d was delivered after %d", l.pair, l.order, s.last[l.pair])
		}
		s.last[l.pair] = l.order
	}
	if b := s.Fabric.Begun(m); b < l.posted || b > s.Engine.Now() {
		s.t.Errorf("message %d was posted at %v, begun at %v and delivered at %v", m, l.posted, b, s.Engine.Now())
	}
	if s.after != nil {
		s.after(m)
	}
}

// Acked implements fabric.Sink.
func (s *session) Acked(m int32) {
	l := s.under[m]
	if s.posting {
		s.t.Errorf("message %d was acknowledged inside Post", m)
	}
	if l == nil || !l.delivered {
		s.t.Errorf("message %d was acknowledged before it was delivered", m)
		return
	}
	s.acked++
	if b := s.Fabric.Begun(m); b < l.posted {
		s.t.Errorf("message %d was posted at %v and begun at %v", m, l.posted, b)
	}
	if s.keep {
		s.kept = append(s.kept, m)
		return
	}
	delete(s.under, m)
	s.Fabric.Forget(m)
}

// run lets all messages arrive.
func (s *session) run(want int) {
	s.t.Helper()
	s.Engine.Run(sim.Forever)
	if s.delivered != want || s.acked != want {
		s.t.Errorf("%d of %d messages were delivered, %d acknowledged", s.delivered, want, s.acked)
	}
}

func (s *session) refused() {
	for _, c := range []struct {
		what     string
		src, dst int32
		class    uint8
	}{
		{"to itself", s.Nodes[0], s.Nodes[0], 3},
		{"from nowhere", -1, s.Nodes[0], 3},
		{"to nowhere", s.Nodes[0], 1 << 20, 3},
		{"in the class of control traffic", s.Nodes[0], s.Nodes[1], 0},
		{"in a class that there is not", s.Nodes[0], s.Nodes[1], 200},
	} {
		if _, err := s.Fabric.Open(c.src, c.dst, c.class); err == nil {
			s.t.Errorf("a queue pair %s opens", c.what)
		}
		if x, ok := s.Fabric.(nvmf.Chooser); ok {
			if _, err := x.Send(c.src, c.dst, c.class, 100); err == nil {
				s.t.Errorf("a message %s is sent", c.what)
			}
		}
	}
	if _, err := s.Fabric.Post(1<<20, 100); err == nil {
		s.t.Error("a queue pair that was not opened takes a message")
	}
	q := s.open(0, 1)
	for _, size := range []units.Bytes{0, -1} {
		if _, err := s.Fabric.Post(q, size); err == nil {
			s.t.Errorf("a message of %v is posted", size)
		}
	}
	s.post(q, 1)
	s.run(1)
}

func (s *session) inOrder() {
	random := rng.NewStream(1, "messages")
	pairs := []fabric.QP{s.open(0, 1), s.open(0, 1), s.open(1, 0), s.open(2, 1), s.open(0, 2)}
	const n = 500
	for i := range n {
		s.post(pairs[i%len(pairs)], units.Bytes(1+random.IntN(20000)))
		if random.IntN(3) == 0 {
			s.Engine.Run(s.Engine.Now() + sim.Time(random.IntN(int64(20*units.Microsecond))))
		}
	}
	s.run(n)
	if len(s.under) > 0 {
		s.t.Errorf("%d messages are left", len(s.under))
	}
}

func (s *session) chain() {
	there, back := s.open(0, 1), s.open(1, 0)
	left := 300
	s.after = func(m int32) {
		to := there
		if s.under[m].pair == there {
			to = back
		}
		if left--; left > 0 {
			s.post(to, units.Bytes(left*10))
		}
	}
	s.post(there, 64)
	s.run(300)
}

// numbers verifies that a message keeps its number and its time until it is forgotten.
func (s *session) numbers() {
	q := s.open(0, 1)
	s.keep = true
	for range 20 {
		s.post(q, 5000)
	}
	s.run(20)
	begun := map[int32]sim.Time{}
	for _, m := range s.kept {
		begun[m] = s.Fabric.Begun(m)
	}
	s.keep = false
	for range 40 {
		s.post(q, 100) // note detects a number that is given twice
	}
	s.run(60)
	for m, at := range begun {
		if now := s.Fabric.Begun(m); now != at {
			s.t.Errorf("message %d was begun at %v, and then at %v", m, at, now)
		}
		delete(s.under, m)
		s.Fabric.Forget(m)
	}
	for range 40 {
		s.post(q, 100)
	}
	s.run(100)
}

// reader opens both directions of a queue pair and the answer stream on the first.
func (s *session) reader() (x nvmf.Reader, out, back, answers fabric.QP) {
	s.t.Helper()
	out, back = s.open(0, 1), s.open(1, 0)
	x, ok := s.Fabric.(nvmf.Reader)
	if !ok {
		s.t.Skip("the network answers no RDMA Reads")
	}
	answers, err := x.Respond(out, back)
	if err != nil {
		s.t.Fatal(err)
	}
	return x, out, back, answers
}

// ask posts the request of an RDMA Read, answer its answer.
func (s *session) ask(x nvmf.Reader, q fabric.QP) {
	s.send(q, func() (int32, error) { return x.Ask(q, 16) })
}

func (s *session) answer(x nvmf.Reader, q fabric.QP, size units.Bytes, request int32) {
	s.send(q, func() (int32, error) { return x.Answer(q, size, request) })
}

func (s *session) answered() {
	x, out, back, answers := s.reader()
	random := rng.NewStream(1, "messages")
	s.after = func(m int32) {
		if l := s.under[m]; l.pair == back && l.order%3 == 0 {
			s.answer(x, answers, units.Bytes(1+random.IntN(20000)), m)
		}
	}
	const n = 300
	for i := range n {
		s.post(out, units.Bytes(1+random.IntN(10000)))
		if i%3 == 2 {
			s.ask(x, back)
		} else {
			s.post(back, units.Bytes(1+random.IntN(10000)))
		}
		if random.IntN(3) == 0 {
			s.Engine.Run(s.Engine.Now() + sim.Time(random.IntN(int64(20*units.Microsecond))))
		}
	}
	s.run(2*n + n/3)
	if len(s.under) > 0 {
		s.t.Errorf("%d messages are left", len(s.under))
	}
	for _, q := range [][2]fabric.QP{{out, out}, {out, 1 << 20}, {-1, back}} {
		if _, err := x.Respond(q[0], q[1]); err == nil {
			s.t.Errorf("queue pair %d answers a command of %d", q[0], q[1])
		}
	}
}

// beside verifies that an answer overtakes messages that its host has posted before.
func (s *session) beside() {
	x, out, back, answers := s.reader()
	var order []fabric.QP
	s.after = func(m int32) {
		order = append(order, s.under[m].pair)
		if s.under[m].pair == back {
			s.answer(x, answers, 4096, m)
		}
	}
	s.post(out, 10*units.MiB)
	s.ask(x, back)
	s.run(3)
	if len(order) == 3 && order[1] != answers {
		s.t.Error("an answer has waited for the send queue")
	}
}

func (s *session) chosen() {
	x, ok := s.Fabric.(nvmf.Chooser)
	if !ok {
		s.t.Skip("the network is not a Chooser")
	}
	const n = 300
	for i := range n {
		s.posting = true
		m, err := x.Send(s.Nodes[i%3], s.Nodes[(i+1)%3], 3, units.Bytes(1+i*50))
		s.posting = false
		s.note(m, err, letter{posted: s.Engine.Now(), order: -1})
		if i%4 == 0 {
			s.Engine.Run(s.Engine.Now() + units.Microsecond)
		}
	}
	s.run(n)
}

// shared verifies that no more messages are delivered than there are receives, that all are once receives are posted
// again, and that messages without a pool do not wait.
func (s *session) shared() {
	a, b, free := s.open(0, 1), s.open(2, 1), s.open(0, 1)
	x, ok := s.Fabric.(nvmf.Pooler)
	if !ok {
		s.t.Skip("the network's queue pairs share no receives")
	}
	const receives = 3
	pool, err := x.Pool(receives, 10*units.Microsecond)
	if err == nil {
		err = errors.Join(x.Receives(a, pool), x.Receives(b, pool))
	}
	if err != nil {
		s.t.Skipf("this network's queue pairs share no receives: %v", err)
	}
	held, total := 0, 0
	s.after = func(m int32) {
		if s.under[m].pair == free {
			return
		}
		if held++; held > receives || x.Posted(pool) > receives-held { // others may have come in part
			s.t.Fatalf("%d messages were delivered with %d receives, %d of them posted", held, receives, x.Posted(pool))
		}
		total++
	}
	const n = 60
	for i := range n {
		s.post([]fabric.QP{a, b}[i%2], units.Bytes(1+i*100))
	}
	s.post(free, 100)
	s.Engine.Run(units.Millisecond)
	if held != receives || s.delivered != receives+1 {
		s.t.Errorf("%d of %d messages were delivered with %d receives, and %d in all", held, n, receives, s.delivered)
	}
	at := units.Millisecond
	for i := 0; total < n && i < 100*n; i++ {
		if held > i%2 { // sometimes one is kept back
			held--
			x.Repost(pool)
		}
		at += 3 * units.Microsecond
		s.Engine.Run(at)
	}
	if total < n {
		s.t.Fatalf("%d of %d messages were delivered", total, n)
	}
	s.run(n + 1)
	if got := x.Posted(pool); got != receives-held {
		s.t.Errorf("%d of %d receives are posted with %d messages outstanding", got, receives, held)
	}
	if err := x.Receives(-1, pool); err == nil {
		s.t.Error("a queue pair that does not exist shares receives")
	}
	if _, err := x.Pool(0, 10*units.Microsecond); err == nil {
		s.t.Error("a pool has no receives")
	}
}
