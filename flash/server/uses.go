package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"sync"

	"farflash/flash/qos"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
)

// User is a client that has an export open.
type User struct {
	Protocol string `json:"protocol"`
	Peer     string `json:"peer"` // address; of NVMe, the host's name
}

// peer is how a client is called.
func peer(a net.Addr) string {
	if _, is := a.(*net.UnixAddr); is {
		return "a process on this machine"
	}
	return a.String()
}

// uses are the uses of exports, by name, and the exports that are being drained.
type uses struct {
	mu  sync.Mutex
	all map[string]*record // in use or draining
}

type record struct {
	name     string
	open     map[*opening]bool
	draining bool
}

// opening is one use of an export.
type opening struct {
	of *record
	by User
}

// take begins a use, unless there are as many as there may be.
func (u *uses) take(name string, by User, most int) (*opening, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.all[name]
	switch {
	case r == nil:
		r = &record{name: name, open: map[*opening]bool{}}
		u.all[name] = r
	case r.draining:
		return nil, control.Draining
	case len(r.open) >= most:
		return nil, fmt.Errorf("too many connections use the export: %w", verbs.ErrFull)
	}
	o := &opening{r, by}
	r.open[o] = true
	return o, nil
}

// give ends a use.
func (u *uses) give(o *opening) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(o.of.open, o)
	u.tidy(o.of)
}

func (u *uses) tidy(r *record) {
	if len(r.open) == 0 && !r.draining && u.all[r.name] == r {
		delete(u.all, r.name)
	}
}

// drain sets whether an export is being drained, and reports whether it was.
func (u *uses) drain(name string, on bool) (was bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.all[name]
	if r == nil {
		r = &record{name: name, open: map[*opening]bool{}}
		u.all[name] = r
	}
	was, r.draining = r.draining, on
	u.tidy(r)
	return was
}

// draining reports whether an export is being drained.
func (u *uses) draining(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.all[name]
	return r != nil && r.draining
}

// drains returns the exports that are being drained.
func (u *uses) drains() (all []Drain) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.all {
		if r.draining {
			all = append(all, Drain{Export: r.name, Users: r.users()})
		}
	}
	slices.SortFunc(all, func(a, b Drain) int { return cmp.Compare(a.Export, b.Export) })
	return all
}

// users returns who has an export open, each use by itself.
func (r *record) users() []User {
	all := make([]User, 0, len(r.open))
	for o := range r.open {
		all = append(all, o.by)
	}
	slices.SortFunc(all, func(a, b User) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Peer, b.Peer))
	})
	return all
}

// Drain is the state of an export that is being drained.
type Drain struct {
	Export string `json:"export"`
	Users  []User `json:"users"` // who still has it open
	Hosts  int    `json:"hosts"` // NVMe hosts that are connected and wait, if it is a namespace
}

// DrainExport closes an export to new users. Those that have it open go on until they close it, except for NVMe hosts,
// whose protocol knows no closing: what the server has accepted completes, and with everything else they wait until
// ResumeExport. It may be called again, to learn who is left. The server forgets it when it ends.
func (s *Server) DrainExport(name string) (Drain, error) {
	name, err := s.existing(name)
	if err != nil {
		return Drain{}, err
	}
	if !s.uses.drain(name, true) {
		s.log.Info("the export takes no new clients", "export", name)
		s.Refresh()
	}
	x := Drain{Export: name, Users: []User{}}
	for _, d := range s.drains() {
		if d.Export == name {
			x = d
		}
	}
	return x, nil
}

// ResumeExport opens an export again that was being drained.
func (s *Server) ResumeExport(name string) error {
	name = Name(name)
	if !s.uses.drain(name, false) {
		if _, err := s.existing(name); err != nil {
			return err
		}
		return fmt.Errorf("%s is not being drained", name)
	}
	s.log.Info("the export takes clients again", "export", name)
	s.Refresh()
	return nil
}

// drains returns the exports that are being drained.
func (s *Server) drains() []Drain {
	all := s.uses.drains()
	if s.spaces != nil {
		hosts, _ := s.spaces.target.Associations()
		for i := range all {
			if s.spaces.has(all[i].Export) {
				all[i].Hosts = hosts
			}
		}
	}
	return all
}

// SetLimit changes the limit of an export, for all that have it open queued accesses included, until the server
// ends. The zero Limit takes it away.
func (s *Server) SetLimit(name string, l qos.Limit) error {
	name, err := s.existing(name)
	if _, had := s.gates.limits()[name]; err != nil && (!had || l != qos.Limit{}) {
		return err // but the limit of a file that is gone can be taken away
	}
	if err := s.gates.set(name, l); err != nil {
		return err
	}
	s.log.Info("the export has another limit", "export", name, "limit", l.String())
	return nil
}

// existing returns the name of an export, in one spelling, and an error if there is none.
func (s *Server) existing(name string) (string, error) {
	name = Name(name)
	f, err := s.cfg.Files.Open(name, verbs.RemoteRead|change)
	switch {
	case err == nil:
		return name, f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return name, err
	}
	var all []string
	for known, err := range s.cfg.Files.List() {
		if err != nil {
			return name, err
		}
		all = append(all, known)
	}
	return name, Absent(name, all)
}

// Absent is the error for an export that does not exist, with the ones that do.
func Absent(name string, all []string) error {
	if hint := Hint(name, all); hint != "" {
		return fmt.Errorf("no export %s; %s", name, hint)
	}
	return fmt.Errorf("no export %s; farflash flash fs ls lists the files, and farflash flash fs truncate --create "+
		"creates one", name)
}

// Order is what an operator of the machine asks of a server, one thing at a time: farflash flash ctl sends it as JSON.
type Order struct {
	Export string     `json:"export"`
	Drain  bool       `json:"drain,omitempty"` // answered with a Drain
	Resume bool       `json:"resume,omitempty"`
	Limit  *qos.Limit `json:"limit,omitempty"`
}

// Obey executes an Order in JSON and returns its answer, to be encoded in JSON.
func (s *Server) Obey(order json.RawMessage) (answer any, err error) {
	var x Order
	d := json.NewDecoder(bytes.NewReader(order))
	d.DisallowUnknownFields()
	switch err := d.Decode(&x); {
	case err != nil:
		return nil, fmt.Errorf("the daemon is another version, or the order is wrong: %w", err)
	case x.Drain:
		return s.DrainExport(x.Export)
	case x.Resume:
		return nil, s.ResumeExport(x.Export)
	case x.Limit != nil:
		return nil, s.SetLimit(x.Export, *x.Limit)
	}
	return nil, errors.New("the order asks for nothing")
}
