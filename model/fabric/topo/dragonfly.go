package topo

import "farflash/numeric/units"

// draw builds a dragonfly with two virtual channels, which minimal routing needs.
//
// A minimal path is: from the host to its router, a local link, a global link, a local link, to the host, where each of
// the three may be missing. A hop uses channel 1 if no global link lies ahead, else channel 0. So the resources that a
// packet holds while it waits only ever go upwards in the order
//
//	local, channel 0  <  global, channel 0  <  local, channel 1  <  host
//
// because routers of a group are fully linked, so that a packet never takes two local links in a row. Without the
// second channel, packets that wait for a global link after a local one and packets that wait for a local link after a
// global one can form a cycle of waits. Failed links may force longer paths; Cycle determines whether those are safe.
func (f *Dragonfly) draw(d *drawing) error {
	if err := counts(count{"dragonfly.groups", f.Groups}, count{"dragonfly.routers", f.Routers},
		count{"dragonfly.hosts_per_router", f.HostsPerRouter}); err != nil {
		return err
	}
	if f.GlobalLinks < 0 || f.GlobalLinks > maxCount {
		return units.Wrong("dragonfly.global_links", "%d is not possible; use 0 to %d", f.GlobalLinks, maxCount)
	}
	most := int64(f.Routers)*int64(f.GlobalLinks) + 1
	if int64(f.Groups) > most {
		return units.Wrong("dragonfly.groups",
			"%d is not possible; a group has %d global links, so use at most %d groups, or more global_links",
			f.Groups, most-1, most)
	}
	routers := int64(f.Groups) * int64(f.Routers)
	if routers > maxSwitches {
		return fits("dragonfly", 0, routers, 0)
	}
	hosts := routers * int64(f.HostsPerRouter)
	if err := fits("dragonfly", hosts, routers,
		hosts+routers*int64(f.Routers-1)/2+routers*int64(f.GlobalLinks)/2); err != nil {
		return err
	}
	d.g.Channels = 2
	h := d.add("h", int(hosts), 0, f.Routers*f.HostsPerRouter)
	router := d.add("r", int(routers), 1, f.Routers)
	d.hosts(h, router, int(routers), f.HostsPerRouter)
	for group := range f.Groups {
		first := router + int32(group*f.Routers)
		for i := range int32(f.Routers) {
			for j := i + 1; j < int32(f.Routers); j++ {
				d.up(first+i, first+j)
			}
		}
	}
	if f.Groups == 1 {
		return nil
	}
	// Global slot s of a group leads s%others+1 groups further round the ring, to the slot there that leads back. It
	// belongs to router s/GlobalLinks.
	others := f.Groups - 1
	rounds := f.Routers * f.GlobalLinks / others
	for a := range f.Groups {
		for round := range rounds {
			for ahead := 1; ahead <= others-a; ahead++ {
				b := a + ahead
				there := round*others + ahead - 1
				back := round*others + others - ahead
				d.up(router+int32(a*f.Routers+there/f.GlobalLinks), router+int32(b*f.Routers+back/f.GlobalLinks))
				d.g.Links[len(d.g.Links)-1].Global = true
			}
		}
	}
	return nil
}
