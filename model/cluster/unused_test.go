package cluster_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// key returns a field's name in scenarios.
func key(field string) string {
	if strings.ToUpper(field) == field {
		return strings.ToLower(field)
	}
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// leafKeys returns all keys of a configuration.
func leafKeys(t reflect.Type, within string) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		at := units.JoinPath(within, key(f.Name))
		if f.Type.Kind() == reflect.Struct {
			out = append(out, leafKeys(f.Type, at)...)
			continue
		}
		out = append(out, at)
	}
	return out
}

// fingerprint summarizes a run, so that different runs can be distinguished.
func fingerprint(t *testing.T, cfg cluster.Config) string {
	t.Helper()
	c, done := run(t, cfg, 1, 3*units.Millisecond)
	at := sim.Time(0)
	for i, d := range done {
		at += d.Done*sim.Time(i+1) + sim.Time(d.Gateway)
	}
	disks, links := c.Spent(3 * units.Millisecond)
	return fmt.Sprint(len(done), at, c.Counters, c.AppendBytes(nil), disks, links)
}

// TestEveryKeyActs verifies, for every protocol, that a key that is not at its default changes the run or is refused by
// name.
func TestEveryKeyActs(t *testing.T) {
	type change = func(*cluster.Config)
	both := func(list ...change) change {
		return func(c *cluster.Config) {
			for _, x := range list {
				x(c)
			}
		}
	}
	nothing := func(*cluster.Config) {}
	reads := func(c *cluster.Config) { c.Reads, c.Objects = 0.5, 200 }
	fails := func(c *cluster.Config) {
		c.Failures, c.Repair.Detect, c.Objects, c.Reads = []cluster.Failure{{Target: 2, At: 300 * units.Microsecond}},
			100*units.Microsecond, 200, 0.3
	}
	hedged := both(reads, func(c *cluster.Config) { c.Read = cluster.ReadHedged })
	deep := func(c *cluster.Config) { c.Outstanding, c.Disk.Rate = 8, 50*units.ByteRate(units.MiB) }
	elsewhere := map[string]string{"protocol": "it is what the test goes through", "core": "it needs a network",
		"disk.model": "it needs drives", "disk.depth": "the same"}
	keys := map[string]struct{ on, change change }{
		"gateways": {nothing, func(c *cluster.Config) { c.Gateways-- }},
		"targets":  {nothing, func(c *cluster.Config) { c.Targets += 9 }},
		"chunk":    {nothing, func(c *cluster.Config) { c.Chunk /= 2 }},
		"sizes": {nothing, func(c *cluster.Config) {
			c.Sizes = []cluster.Size{{Chunk: c.Chunk, Share: 0.5}, {Chunk: c.Chunk / 4, Share: 0.5}}
		}},
		"memory": {deep, func(c *cluster.Config) { c.Memory = c.Chunk }},
		"update.share": {func(c *cluster.Config) {
			c.Code, c.Update, c.Objects = cluster.Code{Data: 2, Parity: 1}, cluster.Update{Share: 0.1, Size: 4096}, 200
		}, func(c *cluster.Config) { c.Update.Share = 0.9 }},
		"update.size": {func(c *cluster.Config) {
			c.Code, c.Update, c.Objects = cluster.Code{Data: 2, Parity: 1}, cluster.Update{Share: 0.5, Size: 4096}, 200
		}, func(c *cluster.Config) { c.Update.Size *= 2 }},
		"replicas":  {nothing, func(c *cluster.Config) { c.Replicas = 2 }},
		"group":     {nothing, func(c *cluster.Config) { c.Group = 6 }},
		"groups":    {nothing, func(c *cluster.Config) { c.Groups = 1 }},
		"ahead":     {nothing, func(c *cluster.Config) { c.Ahead = units.Millisecond }},
		"code.data": {nothing, func(c *cluster.Config) { c.Code = cluster.Code{Data: 2} }},
		"code.parity": {func(c *cluster.Config) { c.Code = cluster.Code{Data: 2} },
			func(c *cluster.Config) { c.Code.Parity = 2 }},
		"bid_width":   {nothing, func(c *cluster.Config) { c.BidWidth = 3 }},
		"placement":   {nothing, func(c *cluster.Config) { c.Placement = cluster.PlaceHRW }},
		"choices":     {nothing, func(c *cluster.Config) { c.Choices = 2 }},
		"outstanding": {nothing, func(c *cluster.Config) { c.Outstanding = 3 }},
		"load.rate":   {nothing, func(c *cluster.Config) { c.Load.Rate = 2000 }},
		"load.burst":  {func(c *cluster.Config) { c.Load.Rate = 2000 }, func(c *cluster.Config) { c.Load.Burst = 8 }},
		"load.shape": {func(c *cluster.Config) { c.Load.Rate, c.Load.Burst = 2000, 8 },
			func(c *cluster.Config) { c.Load.Shape = 0.3 }},
		"disk.count":  {deep, func(c *cluster.Config) { c.Disk.Count = 3 }},
		"load.share":  {nothing, func(c *cluster.Config) { c.Load.Share = 0.2 }},
		"reads":       {nothing, reads},
		"read":        {reads, func(c *cluster.Config) { c.Read = cluster.ReadTied }},
		"hedge_after": {hedged, func(c *cluster.Config) { c.HedgeAfter = 50 * units.Microsecond }},
		"objects":     {reads, func(c *cluster.Config) { c.Objects = 100 }},
		"disk.rate":   {nothing, func(c *cluster.Config) { c.Disk.Rate /= 2 }},
		"disk.queue":  {deep, func(c *cluster.Config) { c.Disk.Queue = 4 * units.MiB }},
		"disk.latency": {both(deep, func(c *cluster.Config) {
			c.Chunk, c.Outstanding = 4*units.KiB, 64
			if c.Protocol == cluster.Pull {
				c.Ahead = 10 * units.Millisecond
			}
		}), func(c *cluster.Config) { c.Disk.Latency = cluster.LatencyGrows }},
		"disk.kinds": {nothing, func(c *cluster.Config) {
			c.Disk.Kinds = []cluster.Kind{{Share: 0.5, Rate: 50 * units.ByteRate(units.MiB)}}
		}},
		"link.rate":         {nothing, func(c *cluster.Config) { c.Link.Rate /= 2 }},
		"link.overhead":     {nothing, func(c *cluster.Config) { c.Link.Overhead = 0.2 }},
		"link.frame":        {nothing, func(c *cluster.Config) { c.Link.Frame = 4000 }},
		"link.trip":         {nothing, func(c *cluster.Config) { c.Link.Trip *= 3 }},
		"link.loss":         {nothing, func(c *cluster.Config) { c.Link.Loss = 0.02 }},
		"link.mark":         {deep, func(c *cluster.Config) { c.Link.Mark = 0 }},
		"control.unicast":   {nothing, func(c *cluster.Config) { c.Control.Unicast = 200 }},
		"control.replicast": {nothing, func(c *cluster.Config) { c.Control.Replicast = 200 }},
		"processor.message": {nothing, func(c *cluster.Config) { c.Processor.Message = 3 * units.Microsecond }},
		"processor.frame":   {nothing, func(c *cluster.Config) { c.Processor.Frame = 3 * units.Microsecond }},
		"control.share":     {nothing, func(c *cluster.Config) { c.Control.Share = 0.3 }},
		"control.queued":    {nothing, func(c *cluster.Config) { c.Control.Queued = false }},
		"acknowledge":       {nothing, func(c *cluster.Config) { c.Acknowledge = cluster.WriteBack }},
		"choosy":            {deep, func(c *cluster.Config) { c.Choosy = true }},
		"retry_after": {func(c *cluster.Config) { c.Link.Loss = 0.02 },
			func(c *cluster.Config) { c.RetryAfter = 100 * units.Microsecond }},
		"failures":       {nothing, fails},
		"repair.detect":  {fails, func(c *cluster.Config) { c.Repair.Detect = 500 * units.Microsecond }},
		"repair.streams": {fails, func(c *cluster.Config) { c.Repair.Streams = 0 }},
		"repair.disk":    {fails, func(c *cluster.Config) { c.Repair.Disk = 0.01 }},
		"repair.link":    {fails, func(c *cluster.Config) { c.Repair.Link = 0.01 }},
		"quorum":         {nothing, func(c *cluster.Config) { c.Quorum = 1 }},
		"racks":          {nothing, func(c *cluster.Config) { c.Racks = 6 }},
		"overcommit":     {deep, func(c *cluster.Config) { c.Overcommit = 1 }},
		"compat": {nothing,
			func(c *cluster.Config) { c.Compat, c.Control.Queued = cluster.CompatSURGEHead, false }},
	}
	for _, k := range leafKeys(reflect.TypeFor[cluster.Config](), "") {
		if _, ok := keys[k]; !ok && elsewhere[k] == "" {
			t.Errorf("no test of %s", k)
		}
	}
	// Most keys are changed in the same few runs, each of which is simulated once.
	known := map[string]string{}
	does := func(cfg cluster.Config) string {
		key := fmt.Sprintf("%+v", cfg)
		if _, ok := known[key]; !ok {
			known[key] = fingerprint(t, cfg)
		}
		return known[key]
	}
	for _, p := range cluster.Schemes() {
		base := cluster.DefaultConfig()
		base.Protocol, base.Gateways, base.Targets, base.Chunk = p, 8, 18, 64*units.KiB
		if p == cluster.CommandWindow {
			base.Replicas = 1
		}
		for k, x := range keys {
			on := base
			x.on(&on)
			if on.Validate() != nil {
				continue // the setting that would make it act is refused
			}
			off := on
			x.change(&off)
			switch {
			case p == cluster.CommandWindow && (k == "control.queued" || k == "quorum"):
				continue // its messages never meet at one end of a link, and with one copy there is no difference
			case k == "racks" && p.Grouped() && p != cluster.Pull:
				continue // the targets of a group are in different racks, which Validate enforces
			}
			if err := off.Validate(); err != nil {
				found := false
				for _, f := range units.FieldErrors(err) {
					found = found || f.Path == k || strings.HasPrefix(k, f.Path+".") || k == "failures" ||
						k == "link.loss"
				}
				if !found {
					t.Errorf("%v, %s: refused as %v", p, k, err)
				}
				continue
			}
			if does(on) == does(off) {
				t.Errorf("%v, %s: it is accepted and does nothing", p, k)
			}
		}
	}
}

// settled resets every unused key of a configuration.
func settled(cfg cluster.Config) cluster.Config {
	for _, u := range cfg.Unused() {
		u.Reset()
	}
	return cfg
}
