package fabric

// With the build tag invariants a network checks its own laws (Check) after every checkEvery events and stops at the
// first violation; otherwise only tests and the end of a run check them. The tag also lets a test lose packets of its
// choice. Without the tag both are constants that the compiler eliminates.
//
//	go test -tags invariants ./model/fabric

// hold panics if a law is broken. Networks in parts are not checked, because a part sees only its own end of crossing
// packets.
func (n *Network) hold() {
	if n.split != nil {
		return
	}
	if err := n.Check(); err != nil {
		panic("fabric: after event " + n.eng.Now().String() + ": " + err.Error())
	}
}

// loses reports whether an arriving packet is to be lost.
func (n *Network) loses(in int32, x packet) bool { return n.fault != nil && n.fault(in, x) }
