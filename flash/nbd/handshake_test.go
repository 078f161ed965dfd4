package nbd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// shelf has one export, or returns an error, and counts opens and closes.
type shelf struct {
	export         Export
	fails          error
	opened, closed int
}

func (s *shelf) List() iter.Seq[Export] { return func(yield func(Export) bool) { yield(s.export) } }

func (s *shelf) Open(string) (Export, error) {
	s.opened++
	e := s.export
	e.Volume, e.Close = &tape{size: 1 << 20}, func() { s.closed++ }
	return e, s.fails
}

// greeted returns a handshake after the greeting, with a fixed newstyle client.
func greeted(x Exports, mode TLS) *Handshake {
	h := NewHandshake(x, mode)
	h.Input([]byte{0, 0, 0, 3})
	h.Output()
	return h
}

// named is a payload that starts with a name.
func named(name string, rest ...byte) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(name))), name...), rest...)
}

// queries is the payload of an option about metadata contexts of an export.
func queries(export string, list ...string) []byte {
	p := binary.BigEndian.AppendUint32(named(export), uint32(len(list)))
	for _, q := range list {
		p = append(p, named(q)...)
	}
	return p
}

// said is a reply to an option.
type said struct {
	to      Option
	reply   Reply
	payload string
}

func (s said) String() string {
	return fmt.Sprintf("%#x to %d with %q", uint32(s.reply), s.to, s.payload)
}

// answers returns the replies of a handshake to options.
func answers(t *testing.T, h *Handshake, options ...[]byte) (all []said) {
	t.Helper()
	b := slices.Concat(options...)
	if n := h.Input(b); n != len(b) {
		t.Fatalf("%d of %d bytes are taken", n, len(b))
	}
	for b = h.Output(); len(b) > 0; {
		head := ReplyHeader(b)
		if head.Magic() != magicReply {
			t.Fatalf("% x is no reply", b)
		}
		all = append(all, said{head.Option(), head.Reply(), string(b[replySize:][:head.Length()])})
		b = b[replySize+head.Length():]
	}
	return all
}

// TestExportsAreClosed verifies that an export opened to answer a query is closed with the reply, and that the
// transmitted export stays open until it is abandoned and is closed once.
func TestExportsAreClosed(t *testing.T) {
	for what, x := range map[string]struct {
		option         []byte
		fails          error
		opened, closed int
		state          State
	}{
		"information": {option: AppendOption(nil, OptInfo, named("disk", 0, 0)), opened: 1,
			closed: 1},
		"what contexts there are": {option: AppendOption(nil, OptListMetaContext, queries("disk")), opened: 1,
			closed: 1},
		"contexts": {option: AppendOption(nil, OptSetMetaContext, queries("disk", allocation)),
			opened: 1, closed: 1},
		"no contexts": {option: AppendOption(nil, OptSetMetaContext, queries("disk", "other:")),
			opened: 1, closed: 1},
		"too many": {option: AppendOption(nil, OptSetMetaContext,
			append(queries("disk", allocation), 0))},
		"an export": {option: AppendOption(nil, OptGo, named("disk", 0, 0)), opened: 1,
			state: Transmitting},
		"an export, the old way": {option: AppendOption(nil, OptExportName, []byte("disk")), opened: 1,
			state: Transmitting},
		"one that is not there": {option: AppendOption(nil, OptGo, named("disk", 0, 0)),
			fails: errors.ErrUnsupported, opened: 1},
		"information of it": {option: AppendOption(nil, OptInfo, named("disk", 0, 0)),
			fails: errors.ErrUnsupported, opened: 1},
		"contexts of it": {option: AppendOption(nil, OptSetMetaContext, queries("disk", allocation)),
			fails: errors.ErrUnsupported, opened: 1},
		"one not there, the old way": {option: AppendOption(nil, OptExportName, []byte("disk")),
			fails: errors.ErrUnsupported, opened: 1, state: Ended},
		"a name that is none":    {option: AppendOption(nil, OptExportName, []byte("di\x00sk")), state: Ended},
		"a name that is no text": {option: AppendOption(nil, OptExportName, []byte("di\xffsk")), state: Ended},
		"a name of 4096 bytes": {option: AppendOption(nil, OptExportName,
			bytes.Repeat([]byte("x"), maxString)), opened: 1, state: Transmitting},
		"a name of 4097 bytes": {option: AppendOption(nil, OptExportName,
			bytes.Repeat([]byte("x"), maxString+1)), state: Ended},
		"a text in place of a name":       {option: AppendOption(nil, OptGo, named("di\xffsk", 0, 0))},
		"information without its numbers": {option: AppendOption(nil, OptGo, named("disk"))},
	} {
		s := &shelf{fails: x.fails}
		h := greeted(s, NoTLS)
		h.Input(AppendOption(nil, OptStructuredReply, nil))
		h.Input(x.option)
		if s.opened != x.opened || s.closed != x.closed || h.State() != x.state {
			t.Errorf("%s: %d opened, %d closed, state %d", what, s.opened, s.closed, h.State())
		}
		h.Abandon()
		h.Abandon()
		if x.fails == nil && s.closed != s.opened {
			t.Errorf("%s: %d of %d are closed at the end", what, s.closed, s.opened)
		}
	}
}

// TestFlagsOfExports verifies the reported properties of a writable and of a read-only export, through both options,
// and of one without a description.
func TestFlagsOfExports(t *testing.T) {
	for _, x := range []struct {
		readOnly, structured bool
		want                 uint16
	}{
		{false, false, FlagHasFlags | FlagFlush | FlagFUA | FlagTrim | FlagZeroes | FlagMultiConn | FlagCache |
			FlagFastZeroes},
		{true, false, FlagHasFlags | FlagReadOnly | FlagFlush | FlagFUA | FlagMultiConn | FlagCache},
		{true, true, FlagHasFlags | FlagReadOnly | FlagFlush | FlagFUA | FlagDF | FlagMultiConn | FlagCache},
	} {
		s := &shelf{export: Export{Name: "disk", ReadOnly: x.readOnly}}
		h := greeted(s, NoTLS)
		if x.structured {
			answers(t, h, AppendOption(nil, OptStructuredReply, nil))
		}
		export := string(binary.BigEndian.AppendUint16([]byte("\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00"), x.want))
		blocks := said{OptInfo, ReplyInfo, "\x00\x03\x00\x00\x00\x01\x00\x00\x10\x00\x02\x00\x00\x00"}
		want := []said{{OptInfo, ReplyInfo, export}, {OptInfo, ReplyInfo, "\x00\x01disk"}, blocks,
			{OptInfo, ReplyAck, ""}}
		if got := answers(t, h,
			AppendOption(nil, OptInfo,
				named("", 0, 3, 0, InfoDescription, 0, InfoName, 0, InfoName))); !slices.Equal(got, want) {
			t.Errorf("%+v: %v", x, got)
		}
		h.Input(AppendOption(nil, OptExportName, nil))
		if got := string(h.Output()); got != export[2:] {
			t.Errorf("%+v: the old way %v", x, got)
		}
		if e, structured, context := h.Chosen(); e.ReadOnly != x.readOnly || structured != x.structured || context {
			t.Errorf("%+v: chosen %+v, structured %v, context %v", x, e, structured, context)
		}
	}
}

// TestRefusalsAreText has an export refuse with an oversized text: the reply is as long as permitted and valid UTF-8,
// wherever it is truncated.
func TestRefusalsAreText(t *testing.T) {
	for before := range 4 {
		for _, letter := range []string{"x", "é", "€", "😀"} {
			text := "ends"[:before] + strings.Repeat(letter, maxString)
			h := greeted(&shelf{fails: errors.New(text)}, NoTLS)
			got := answers(t, h, AppendOption(nil, OptInfo, named("disk", 0, 0)))
			if len(got) != 1 || got[0].reply != ReplyUnknown {
				t.Fatalf("%v", got)
			}
			if p := got[0].payload; !utf8.ValidString(p) || !strings.HasPrefix(text, p) || len(p) > maxString ||
				len(p) <= maxString-len(letter) {
				t.Errorf("%d bytes are told that end in %q", len(p), p[max(0, len(p)-4):])
			}
		}
	}
}

// TestOptionsAreCounted has a client send the maximum number of options and one more, both parsed and skipped ones.
func TestOptionsAreCounted(t *testing.T) {
	short, long := AppendOption(nil, OptStructuredReply, nil), AppendOption(nil, 99, make([]byte, maxOption+1))
	for what, x := range map[string]struct{ most, more []byte }{
		"short ones":    {short, short},
		"a long one":    {short, long},
		"after a long":  {long, short},
		"only long":     {long, long},
		"which is ABRT": {short, AppendOption(nil, OptAbort, nil)},
	} {
		h := greeted(&shelf{}, NoTLS)
		for i := range maxOptions {
			if got := answers(t, h, x.most); len(got) != 1 || h.State() != Negotiating {
				t.Fatalf("%s: option %d has answers %v, %v", what, i, got, h.Err())
			}
		}
		h.Input(x.more)
		if h.State() != Ended || !errors.Is(h.Err(), errOptions) || len(h.Output()) > 0 {
			t.Errorf("%s: state %d after one option more, %v", what, h.State(), h.Err())
		}
	}
}

// TestInputTakesWholeMessages verifies how much Input consumes: complete messages only, any part of a skipped payload,
// and 0 bytes after the end.
func TestInputTakesWholeMessages(t *testing.T) {
	h := NewHandshake(&shelf{}, NoTLS)
	longest := AppendOption(nil, 99, make([]byte, maxOption))
	if h.Need() != len(longest) {
		t.Errorf("%d bytes are needed, not %d", h.Need(), len(longest))
	}
	take := func(what string, b []byte, want int) {
		t.Helper()
		if n := h.Input(b); n != want {
			t.Errorf("%s: %d bytes are taken, not %d", what, n, want)
		}
	}
	take("nothing", nil, 0)
	take("flags in part", []byte{0, 0, 0}, 0)
	take("flags", []byte{0, 0, 0, 3, 'I'}, 4)
	take("a header in part", longest[:optionSize-1], 0)
	take("a header", longest[:optionSize], 0)
	take("an option in part", longest[:len(longest)-1], 0)
	take("an option", append(longest, 'I'), len(longest))
	long := AppendOption(nil, 99, make([]byte, maxOption+1))
	take("what is too long in part", long[:optionSize+5], optionSize+5)
	take("nothing of the rest", nil, 0)
	take("the rest, and more", append(long[optionSize+5:], 'I'), maxOption+1-5)
	take("the end, and more", append(AppendOption(nil, OptAbort, nil), longest...), optionSize)
	take("what comes after the end", longest, 0)
	if h.State() != Ended || h.Err() != nil {
		t.Errorf("state %d, %v", h.State(), h.Err())
	}
	for what, b := range map[string][]byte{"flags": {0, 0, 0, 4},
		"a magic number": append([]byte{0, 0, 0, 3}, make([]byte, optionSize)...)} {
		h = NewHandshake(&shelf{}, NoTLS)
		take(what, append(b, longest...), len(b))
		if h.State() != Ended || h.Err() == nil || (what == "flags") == errors.Is(h.Err(), errMagic) {
			t.Errorf("%s: state %d, %v", what, h.State(), h.Err())
		}
	}
}

// TestListIsAsLongAsItMay has lists, after other replies, of exactly the maximum length and one byte longer.
func TestListIsAsLongAsItMay(t *testing.T) {
	for more, want := range []Reply{ReplyServer, ReplyTooBig} {
		x := Export{Name: "disk", Description: strings.Repeat("x", maxList-replySize-4-len("disk")+more)}
		h := greeted(&shelf{export: x}, NoTLS)
		unknown := AppendOption(nil, 99, nil)
		got := answers(t, h, unknown, unknown, AppendOption(nil, OptList, nil))
		if len(got) < 3 || got[2].reply != want || got[1] != got[0] || got[0].reply != ReplyUnsupported {
			t.Errorf("%d bytes more: %d answers, the last is %#x", more, len(got), uint32(got[len(got)-1].reply))
		}
		if last := got[len(got)-1]; more == 0 && (len(got) != 4 || last != said{OptList, ReplyAck, ""}) ||
			more == 1 && len(got) != 3 {
			t.Errorf("%d bytes more: %d answers, the last is %#x", more, len(got), uint32(last.reply))
		}
	}
}

// TestContexts verifies the replies to metadata context options and the resulting selection for transmission.
func TestContexts(t *testing.T) {
	many := slices.Repeat([]string{"other:thing"}, maxQueries-1)
	list := func(q ...string) []byte { return AppendOption(nil, OptListMetaContext, queries("disk", q...)) }
	set := func(q ...string) []byte { return AppendOption(nil, OptSetMetaContext, queries("disk", q...)) }
	for what, x := range map[string]struct {
		options  []byte
		contexts int   // context replies to the last option
		last     Reply // final reply to it
		selected bool
	}{
		"all":                         {list(), 1, ReplyAck, false},
		"none":                        {set(), 0, ReplyAck, false},
		"as many as may be":           {set(append(many, allocation)...), 1, ReplyAck, true},
		"listed, as many as may be":   {list(append(many, "base:")...), 1, ReplyAck, false},
		"one too many":                {set(append(many, allocation, "x")...), 0, ReplyTooBig, false},
		"twice the same":              {set(allocation, allocation), 1, ReplyAck, true},
		"by its namespace":            {set("base:"), 0, ReplyAck, false},
		"another of its namespace":    {list("base:other"), 0, ReplyAck, false},
		"listed after it is selected": {append(set(allocation), list()...), 1, ReplyAck, true},
		"selected, then none":         {append(set(allocation), set()...), 0, ReplyAck, false},
		"selected, then malformed": {append(set(allocation), AppendOption(nil, OptSetMetaContext, []byte("x"))...),
			0, ReplyInvalid, false},
		"without a number": {AppendOption(nil, OptSetMetaContext, named("disk", 0, 0, 0)), 0, ReplyInvalid,
			false},
		"with half a query": {AppendOption(nil, OptSetMetaContext, append(queries("disk"), 0, 0, 0)), 0,
			ReplyInvalid, false},
		"with more than it says": {AppendOption(nil, OptListMetaContext, append(queries("disk", allocation), 0)),
			0, ReplyInvalid, false},
	} {
		h := greeted(&shelf{}, NoTLS)
		got := answers(t, h, AppendOption(nil, OptStructuredReply, nil), x.options)
		last := got[len(got)-1]
		contexts := 0
		for i := len(got) - 2; got[i].reply == ReplyMetaContext; i-- {
			id := byte(0)
			if last.to == OptSetMetaContext {
				id = allocationID
			}
			if contexts++; got[i] != (said{last.to, ReplyMetaContext, string([]byte{0, 0, 0, id}) + allocation}) {
				t.Errorf("%s: %v", what, got[i])
			}
		}
		if last.reply != x.last || contexts != x.contexts {
			t.Errorf("%s: %d contexts, and %#x", what, contexts, uint32(last.reply))
		}
		h.Input(AppendOption(nil, OptGo, named("disk", 0, 0)))
		if _, _, context := h.Chosen(); context != x.selected || h.State() != Transmitting {
			t.Errorf("%s: selected %v, state %d", what, context, h.State())
		}
	}
}

// TestTLS verifies when TLS starts, that negotiation before it has no effect after it, and that bytes sent before it
// are not processed after it.
func TestTLS(t *testing.T) {
	start, structured := AppendOption(nil, OptStartTLS, nil), AppendOption(nil, OptStructuredReply, nil)
	for _, mode := range []TLS{OfferTLS, RequireTLS} {
		inside, outside := &shelf{}, &shelf{}
		h := greeted(outside, mode)
		h.Secured(inside)
		if got := answers(t, h, AppendOption(nil, OptStartTLS, []byte("x"))); got[0].reply != ReplyInvalid ||
			h.State() != Negotiating {
			t.Fatalf("with a payload %v, state %d", got, h.State())
		}
		if mode == OfferTLS {
			answers(t, h, structured, AppendOption(nil, OptSetMetaContext, queries("disk", allocation)))
		}
		opened := outside.opened
		if got := answers(t, h, start); len(got) != 1 || got[0] != (said{OptStartTLS, ReplyAck, ""}) ||
			h.State() != Upgrading {
			t.Fatalf("%v, state %d", got, h.State())
		}
		h.Secured(inside)
		if got := answers(t, h, start); got[0].reply != ReplyInvalid || h.State() != Negotiating {
			t.Errorf("begun again: %v, state %d", got, h.State())
		}
		if got := answers(t, h, AppendOption(nil, OptGo, named("disk", 0, 0))); h.State() != Transmitting ||
			inside.opened != 1 || outside.opened != opened {
			t.Errorf("%v, state %d, %d opened inside", got, h.State(), inside.opened)
		}
		if _, structured, context := h.Chosen(); structured || context {
			t.Error("what was negotiated before TLS holds behind it")
		}
		h = greeted(inside, mode)
		if n := h.Input(append(start, structured...)); n != len(start) || h.State() != Ended ||
			!errors.Is(h.Err(), errInjected) {
			t.Errorf("bytes before TLS: %d are taken, state %d, %v", n, h.State(), h.Err())
		}
	}
}

// TestTooLongAnOptionIsNoWayRound verifies that an oversized option is still refused for missing TLS, and ends the
// connection of a client without fixed newstyle.
func TestTooLongAnOptionIsNoWayRound(t *testing.T) {
	for o, want := range map[Option]Reply{99: ReplyTLSRequired, OptInfo: ReplyTLSRequired, OptStartTLS: ReplyTooBig,
		OptAbort: ReplyTooBig} {
		long := AppendOption(nil, o, make([]byte, maxOption+1))
		if got := answers(t, greeted(&shelf{}, RequireTLS), long); len(got) != 1 || got[0].reply != want {
			t.Errorf("option %d without TLS: %v", o, got)
		}
		for _, mode := range []TLS{NoTLS, RequireTLS} {
			for _, b := range [][]byte{long, AppendOption(nil, o, nil)} {
				h := NewHandshake(&shelf{}, mode)
				h.Output()
				h.Input(append([]byte{0, 0, 0, 0}, b...))
				if out := h.Output(); h.State() != Ended || h.Err() == nil || len(out) > 0 {
					t.Errorf("option %d of %d bytes by the old rules: %q, state %d", o, len(b), out, h.State())
				}
			}
		}
	}
}
