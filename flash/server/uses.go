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

// uses are the uses of exports, by name.
type uses struct {
	mu  sync.Mutex
	all map[string]*record // in use
}

type record struct {
	name string
	open map[*opening]bool
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
	if len(o.of.open) == 0 && u.all[o.of.name] == o.of {
		delete(u.all, o.of.name)
	}
}

// users lists the uses of an export, one entry each.
func (u *uses) users(name string) []User {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := []User{}
	if r := u.all[name]; r != nil {
		for o := range r.open {
			all = append(all, o.by)
		}
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
	// Brief is the reason why a server that starts later does not know that the export is drained; empty: it does.
	Brief string `json:"brief,omitempty"`
}

// DrainExport closes an export to new users. Those that have it open go on until they close it, except for NVMe hosts,
// whose protocol knows no closing: what the server has accepted completes, and with everything else they wait until
// ResumeExport. Calling it again returns the remaining users.
func (s *Server) DrainExport(name string) (Drain, error) {
	name, was, err := s.existing(name)
	if err != nil {
		return Drain{}, err
	}
	brief, err := s.cfg.Files.Drain(name, true)
	if err != nil {
		return Drain{}, err
	}
	if !was {
		s.log.Info("the export takes no new clients", "export", name)
		s.Refresh()
	}
	x := s.drain(name)
	if brief != nil {
		x.Brief = brief.Error()
	}
	return x, nil
}

// ResumeExport opens an export again that was being drained.
func (s *Server) ResumeExport(name string) error {
	name, was, err := s.existing(name)
	switch {
	case err != nil:
		return err
	case !was:
		return fmt.Errorf("%s is not being drained", name)
	}
	if _, err := s.cfg.Files.Drain(name, false); err != nil {
		return err
	}
	s.log.Info("the export takes clients again", "export", name)
	s.Refresh()
	return nil
}

// drain returns the state of an export that is being drained.
func (s *Server) drain(name string) Drain {
	x := Drain{Export: name, Users: s.uses.users(name)}
	if s.spaces != nil && s.spaces.has(name) {
		x.Hosts, _ = s.spaces.target.Associations()
	}
	return x
}

// drains returns the exports that are being drained.
func (s *Server) drains() []Drain {
	all := []Drain{}
	for _, name := range s.cfg.Files.Drained() {
		all = append(all, s.drain(name))
	}
	return all
}

// existing returns the name of an export, in one spelling, and whether it is drained; and an error if there is none.
func (s *Server) existing(spelled string) (name string, drained bool, err error) {
	name = Name(spelled)
	f, err := s.cfg.Files.Open(name, verbs.RemoteRead|change)
	switch {
	case err == nil:
		return name, f.Drained, f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return name, false, err
	}
	var all []string
	for known, err := range s.cfg.Files.List() {
		if err != nil {
			return name, false, err
		}
		all = append(all, known)
	}
	return name, false, Absent(name, all)
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
	Limit  *qos.Limit `json:"limit,omitempty"` // answered with a Limited
}

// Limited is the answer to another limit.
type Limited struct {
	// Brief is the reason why a server that starts later has the limit of before; empty: it has the new one.
	Brief string `json:"brief,omitempty"`
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
		brief, err := s.SetLimit(x.Export, *x.Limit)
		if err != nil || brief == nil {
			return Limited{}, err
		}
		return Limited{brief.Error()}, nil
	}
	return nil, errors.New("the order asks for nothing")
}
