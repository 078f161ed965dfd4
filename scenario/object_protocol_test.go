package scenario

import (
	"testing"

	"farflash/model/cluster"
	"farflash/model/cluster/traffic"
)

// TestObjectProtocols verifies that every protocol of package cluster and every model without puts is a protocol of the
// scenario, by its name and by SURGE's number if it has one, that both are unique, and that the cluster's own protocol
// is the scenario's.
func TestObjectProtocols(t *testing.T) {
	said := map[string]ObjectProtocol{}
	say := func(word string, p ObjectProtocol) {
		t.Helper()
		var got ObjectProtocol
		if err := got.UnmarshalText([]byte(word)); err != nil || got != p {
			t.Errorf("%s is %v, not %v (%v)", word, got, p, err)
		}
		if other, ok := said[word]; ok {
			t.Errorf("%v and %v are both %s", other, p, word)
		}
		said[word] = p
	}
	for _, s := range cluster.Schemes() {
		p := ObjectProtocol(s)
		if got, ok := p.put(); !ok || got != s || p.String() != s.String() {
			t.Errorf("%v is %v (%v)", s, got, ok)
		}
		if _, ok := p.Traffic(); ok {
			t.Errorf("%v puts chunks and exchanges events", s)
		}
		say(s.String(), p)
		if s.Number() != "" {
			say(s.Number(), p)
		}
		// With a protocol known only to the scenario, the cluster would run its default.
		text := "object_cluster: {protocol: " + s.String() + "}\nmeasure: {until: 1ms}\n"
		if x, err := parse(text); err != nil || x.ObjectCluster.Config.Protocol != s {
			t.Errorf("%v: the cluster's protocol is another (%v)", s, err)
		}
	}
	for k, want := range map[traffic.Kind][2]string{
		traffic.Storm: {"storm", "1"}, traffic.PowerOfTwo: {"power-of-two", "1.1"}, traffic.Peers: {"peers", "2"},
		traffic.PeersBucket: {"peers-bucket", "2.1"},
		traffic.PingPong:    {"ping-pong", "3"}, traffic.Pipeline: {"pipeline", "4"},
	} {
		p := firstTraffic + ObjectProtocol(k)
		if got, ok := p.Traffic(); !ok || got != k {
			t.Errorf("%v is %v (%v)", k, got, ok)
		}
		if _, ok := p.put(); ok {
			t.Errorf("%v puts chunks", k)
		}
		say(want[0], p)
		say(want[1], p)
	}
	if _, puts := Tiering.put(); puts {
		t.Error("tiers put chunks")
	}
	say("tiering", Tiering)
	say("c", Tiering)
	var p ObjectProtocol
	if err := p.UnmarshalText(nil); err == nil {
		t.Errorf("no name at all is %v: not every protocol has a number", p)
	}
	if _, err := (firstTraffic + ObjectProtocol(len(traffic.Kinds()))).MarshalText(); err == nil {
		t.Error("there is a protocol behind the last pattern")
	}
}
