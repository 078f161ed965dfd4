package fabric

// With the build tag invariants a network looks at its own laws (Check) after every checkEvery events and stops at
// the first that is broken, where without it only tests and the end of a run look; and a test can have packets lost
// of its own choice. Without the tag both are constants that the compiler takes out.
//
//	go test -tags invariants ./model/fabric

// hold panics if a law is broken. Parts of a network see only their own ends of what crosses, so they are not looked
// at.
func (n *Network) hold() {
	if n.split != nil {
		return
	}
	if err := n.Check(); err != nil {
		panic("fabric: after event " + n.eng.Now().String() + ": " + err.Error())
	}
}

// loses asks whether a packet that arrives is to be lost.
func (n *Network) loses(in int32, x packet) bool { return n.fault != nil && n.fault(in, x) }
