package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"

	"farflash/flash/qos"
)

// Keeper keeps the limits that SetLimit sets beyond the server's end. A cfs.FS is one.
type Keeper interface {
	// Keep stores settings durably in place of the last ones.
	Keep(settings []byte) error
	// Kept returns the last ones; empty: none.
	Kept() []byte
}

// limits are the limits of exports: those of the configuration, and those that an operator has set in their place. A
// limit of an operator is in force until the configuration has another limit for the export than at that time. That
// holds across restarts too, so that one with an unchanged configuration changes no limit.
type limits struct {
	gates  *gates
	keeper Keeper // nil: nothing keeps them
	log    *slog.Logger

	mu         sync.Mutex
	closed     error // why the keeper's settings must not be replaced
	configured map[string]qos.Limit
	set        map[string]replaced // by an operator
}

// replaced is the limit of an operator, and that of the configuration when it was set.
type replaced struct{ limit, configured qos.Limit }

// newLimits returns the limits of the configuration, and those that are kept.
func newLimits(g *gates, keeper Keeper, log *slog.Logger) (*limits, error) {
	l := &limits{gates: g, keeper: keeper, log: log, configured: g.limits(), set: map[string]replaced{}}
	if keeper == nil {
		return l, nil
	}
	kept, err := decodeLimits(keeper.Kept())
	if err != nil {
		l.closed = fmt.Errorf("the pool keeps limits that this program cannot read: %w", err)
		log.Warn("limits set by flash ctl are not in force", "error", l.closed)
		return l, nil
	}
	l.set = kept
	if err := l.renew(l.configured); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(l.set)) {
		log.Info("limit set by flash ctl", "export", name, "limit", l.set[name].limit.String(),
			"configured", l.set[name].configured.String())
	}
	return l, nil
}

// of returns the limit of an export. The caller holds l.mu.
func (l *limits) of(name string) qos.Limit {
	if x, ok := l.set[name]; ok {
		return x.limit
	}
	return l.configured[name]
}

// renew takes another configuration, which ends the limits of operators for exports of which it has another one.
// The caller holds l.mu, or is the only user.
func (l *limits) renew(configured map[string]qos.Limit) error {
	changed := map[string]bool{}
	for _, all := range []map[string]qos.Limit{l.configured, configured} {
		for name := range all {
			changed[name] = true
		}
	}
	l.configured = configured
	ended := false
	for _, name := range slices.Sorted(maps.Keys(l.set)) {
		changed[name] = true
		if x := l.set[name]; x.configured != configured[name] {
			delete(l.set, name)
			ended = true
			l.log.Warn("the configuration has another limit since flash ctl set one, and replaces it",
				"export", name, "limit", configured[name].String(), "was", x.limit.String())
		}
	}
	var err error
	for name := range changed {
		err = errors.Join(err, l.gates.set(name, l.of(name)))
	}
	if ended {
		if err := l.keep(); err != nil {
			l.log.Warn("the next start finds limits of flash ctl that have ended", "error", err)
		}
	}
	return err
}

// keep stores the limits of operators. The caller holds l.mu.
func (l *limits) keep() error {
	switch {
	case l.keeper == nil:
		return errors.New("nothing keeps it")
	case l.closed != nil:
		return l.closed
	}
	return l.keeper.Keep(encodeLimits(l.set))
}

// SetLimit changes the limit of an export, for all that have it open queued accesses included. The zero Limit is none.
// It is in force until it is changed again, or Configure has another limit for the export than now; a server that
// starts later counts too, unless brief says why not. It belongs to the name.
func (s *Server) SetLimit(name string, to qos.Limit) (brief, err error) {
	name, _, err = s.existing(name)
	return s.limits.change(name, to, err)
}

// change sets the limit of an export for an operator, unless there is none for the given reason.
func (l *limits) change(name string, to qos.Limit, absent error) (brief, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if absent != nil && (to != qos.Limit{} || l.of(name) == qos.Limit{}) {
		return nil, absent // but the limit of a file that is gone can be taken away
	}
	if err := l.gates.set(name, to); err != nil {
		return nil, err
	}
	l.log.Info("the export has another limit", "export", name, "limit", to.String())
	_, had := l.set[name]
	if configured := l.configured[name]; to != configured {
		l.set[name] = replaced{to, configured}
	} else if delete(l.set, name); !had {
		return nil, nil
	}
	return l.keep(), nil
}

// Configure replaces the limits of the configuration, by export name in any spelling.
func (s *Server) Configure(all map[string]qos.Limit) error {
	by, err := oneSpelling(all)
	if err != nil {
		return err
	}
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	return s.limits.renew(by)
}

// oneSpelling returns limits by normalized names.
func oneSpelling(all map[string]qos.Limit) (map[string]qos.Limit, error) {
	by := map[string]qos.Limit{}
	for spelled, l := range all {
		name := Name(spelled)
		if _, twice := by[name]; twice {
			return nil, fmt.Errorf("%s has two limits; give one", name)
		}
		by[name] = l
	}
	return by, nil
}

// replacements returns the limits of the configuration that are not in force, because an operator has set others.
func (l *limits) replacements() map[string]qos.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]qos.Limit{}
	for name, x := range l.set {
		all[name] = x.configured
	}
	return all
}

// keptVersion is the first byte of kept limits.
const keptVersion = 1

// encodeLimits encodes limits for a Keeper: a version, then for each export the length of its name, the name, and two
// limits of class, bytes, operations and burst. Numbers are varints, because a pool keeps only a few thousand bytes.
func encodeLimits(all map[string]replaced) []byte {
	if len(all) == 0 {
		return nil
	}
	b := []byte{keptVersion}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
		for _, l := range []qos.Limit{all[name].limit, all[name].configured} {
			for _, n := range []int64{int64(l.Class), l.Bytes, l.Operations, l.Burst} {
				b = binary.AppendUvarint(b, uint64(n))
			}
		}
	}
	return b
}

// decodeLimits decodes what encodeLimits produces, and rejects anything else.
func decodeLimits(b []byte) (map[string]replaced, error) {
	all := map[string]replaced{}
	whole := b
	if len(b) > 0 {
		if b[0] != keptVersion {
			return nil, fmt.Errorf("they have version %d, not %d", b[0], keptVersion)
		}
		b = b[1:]
	}
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b = nil
			return math.MaxUint64
		}
		b = b[size:]
		return n
	}
	limit := func() (qos.Limit, error) {
		class := number()
		l := qos.Limit{Class: qos.Class(min(class, math.MaxUint8)), Bytes: int64(number()), Operations: int64(number()),
			Burst: int64(number())}
		return l, l.Validate()
	}
	for len(b) > 0 {
		n := number()
		if n > uint64(len(b)) {
			return nil, errKept
		}
		name := string(b[:n])
		b = b[n:]
		to, err := limit()
		configured, wrong := limit()
		if err = errors.Join(err, wrong); err != nil {
			return nil, errors.Join(errKept, err)
		}
		all[name] = replaced{to, configured}
	}
	if !bytes.Equal(encodeLimits(all), whole) {
		return nil, errKept
	}
	return all, nil
}

var errKept = errors.New("they are damaged")
