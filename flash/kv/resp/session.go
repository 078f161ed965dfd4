package resp

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"strings"
)

// Config configures the sessions of a server.
type Config struct {
	Limits    Limits
	Password  []byte // that clients must give; empty: none
	Databases int    // that a client can select
	Most      int    // clients, as CONFIG GET says
}

// Redis is the version whose commands are here.
const Redis = "7.0.15"

// Session is the server's side of a connection. Calls must be serialized.
type Session struct {
	writer
	cfg     *Config
	table   []definition
	parser  Parser
	id      uint64
	command Command

	name, library, release string // of the client
	db                     int
	changed                bool
	ends                   bool
	err                    error
}

// NewSession returns a session, with a number that no other has.
func NewSession(cfg *Config, id uint64) *Session {
	s := &Session{cfg: cfg, table: table[:], id: id}
	s.parser.limits = cfg.Limits
	s.reset()
	return s
}

func (s *Session) reset() {
	s.proto, s.db, s.name, s.changed = 2, 0, "", true
	s.parser.Known = len(s.cfg.Password) == 0
}

// mostOutput is the output from which on Input takes no more, in bytes.
const mostOutput = 64 << 10

// Input takes bytes up to the end of a command for a store, which is to be executed; Answer is called then. c is nil if
// there is none in the bytes that it took: all of them, unless there is output to send, or the session has ended.
func (s *Session) Input(b []byte) (n int, c *Command) {
	for n < len(b) && !s.ends && len(s.out) < mostOutput {
		k, done, err := s.parser.Input(b[n:])
		n += k
		if err != nil {
			s.failed("ERR " + err.Error())
			s.ends, s.err = true, err
			break
		}
		if !done {
			continue
		}
		if c := s.begin(); c != nil {
			return n, c
		}
	}
	return n, nil
}

// Known reports that the client may use the stores.
func (s *Session) Known() bool { return s.parser.Known }

// Output returns the bytes to send. Sent drops them.
func (s *Session) Output() []byte { return s.out }

// Sent forgets the output.
func (s *Session) Sent() {
	if s.out = s.out[:0]; cap(s.out) > 2*mostOutput {
		s.out = nil
	}
}

// Over reports that the connection is to be closed after the output, and why unless the client asked for it.
func (s *Session) Over() (bool, error) { return s.ends, s.err }

// Changed reports, once, that Describe has changed.
func (s *Session) Changed() bool {
	was := s.changed
	s.changed = false
	return was
}

// Describe is the client's line in CLIENT LIST, for an address.
func (s *Session) Describe(address string) string {
	return fmt.Sprintf("id=%d addr=%s name=%s db=%d user=default lib-name=%s lib-ver=%s resp=%d\n", s.id, address, s.name,
		s.db, s.library, s.release, s.proto)
}

// begin begins the command that the parser has, and answers it if no store is needed.
func (s *Session) begin() *Command {
	args := s.parser.Args()
	d := s.find(args[0])
	switch {
	case s.parser.TooLong() > 0:
		s.failed(fmt.Sprintf("ERR %d bytes are too long; the most is %d for a value, and %d for a command",
			s.parser.TooLong(), s.cfg.Limits.Value, s.cfg.Limits.Request))
		return nil
	case d == nil:
		s.unknown(args)
		return nil
	case d.args > 0 && len(args) != d.args || len(args) < -d.args:
		s.arity(d.name)
		return nil
	case !s.parser.Known && !d.open:
		s.failed("NOAUTH Authentication required.")
		return nil
	}
	s.command.reset(s.db)
	if d.does(s, args) {
		return &s.command
	}
	return nil
}

func (s *Session) find(name []byte) *definition {
	for i := range s.table {
		if is(name, s.table[i].name) {
			return &s.table[i]
		}
	}
	return nil
}

func (s *Session) unknown(args [][]byte) {
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() >= 128 {
			break
		}
		fmt.Fprintf(&b, "'%s' ", a[:min(len(a), 128)])
	}
	s.failed(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", args[0][:min(len(args[0]), 128)],
		b.String()))
}

func (s *Session) arity(name string) {
	s.failed("ERR wrong number of arguments for '" + name + "' command")
}

func (s *Session) syntax() bool {
	s.failed("ERR syntax error")
	return false
}

func (s *Session) ok() bool {
	s.simple("OK")
	return false
}

// is reports whether an argument is a word, in letters of any case.
func is(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

// lower is an argument in small letters.
func lower(arg []byte) string { return strings.ToLower(string(arg)) }

func ping(s *Session, args [][]byte) bool {
	switch len(args) {
	case 1:
		s.simple("PONG")
	case 2:
		s.bulk(args[1])
	default:
		s.arity("ping")
	}
	return false
}

func echo(s *Session, args [][]byte) bool {
	s.bulk(args[1])
	return false
}

func quit(s *Session, _ [][]byte) bool {
	s.ends = true
	return s.ok()
}

func reset(s *Session, _ [][]byte) bool {
	s.reset()
	s.simple("RESET")
	return false
}

func choose(s *Session, args [][]byte) bool {
	n, ok := integer(args[1])
	switch {
	case !ok:
		s.failed("ERR value is not an integer or out of range")
	case n < 0 || n >= int64(s.cfg.Databases):
		s.failed("ERR DB index is out of range")
	default:
		s.db, s.changed = int(n), true
		return s.ok()
	}
	return false
}

// prove checks a user and a password.
func (s *Session) prove(user, password []byte) bool {
	right := subtle.ConstantTimeCompare(password, s.cfg.Password) == 1
	switch {
	case len(s.cfg.Password) == 0 && len(user) == 0:
		s.failed("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
		return false
	case len(s.cfg.Password) == 0 && is(user, "default"): // Redis takes any password then
	case len(user) > 0 && !bytes.Equal(user, []byte("default")) || !right:
		s.failed("WRONGPASS invalid username-password pair or user is disabled.")
		return false
	}
	s.parser.Known = true
	return true
}

func auth(s *Session, args [][]byte) bool {
	var user []byte
	switch len(args) {
	case 2:
	case 3:
		user = args[1]
	default:
		return s.syntax()
	}
	return s.prove(user, args[len(args)-1]) && s.ok()
}

func hello(s *Session, args [][]byte) bool {
	proto := s.proto
	if len(args) > 1 {
		n, ok := integer(args[1])
		switch {
		case !ok:
			s.failed("ERR Protocol version is not an integer or out of range")
			return false
		case n < 2 || n > 3:
			s.failed("NOPROTO unsupported protocol version")
			return false
		}
		proto = int(n)
	}
	var user, password, name []byte
	for i := 2; i < len(args); {
		switch {
		case is(args[i], "auth") && i+2 < len(args):
			user, password = args[i+1], args[i+2]
			i += 3
		case is(args[i], "setname") && i+1 < len(args):
			name = args[i+1]
			i += 2
		default:
			s.failed(fmt.Sprintf("ERR Syntax error in HELLO option '%s'", args[i]))
			return false
		}
	}
	switch {
	case user != nil && !s.prove(user, password):
		return false
	case !s.parser.Known:
		s.failed("NOAUTH HELLO must be called with the client already authenticated, or with AUTH <user> <pass>")
		return false
	case name != nil && !s.named(name):
		return false
	}
	s.proto, s.changed = proto, true
	s.pairs(7)
	s.text("server")
	s.text("redis")
	s.text("version")
	s.text(Redis)
	s.text("proto")
	s.integer(int64(proto))
	s.text("id")
	s.integer(int64(s.id))
	s.text("mode")
	s.text("standalone")
	s.text("role")
	s.text("master")
	s.text("modules")
	s.array(0)
	return false
}

// named sets the client's name.
func (s *Session) named(name []byte) bool {
	if !plain(name) {
		s.failed("ERR Client names cannot contain spaces, newlines or special characters.")
		return false
	}
	s.name, s.changed = string(name), true
	return true
}

// plain reports that text has only characters that can stand in CLIENT LIST. Others see it there, so it is short.
func plain(text []byte) bool {
	for _, c := range text {
		if c < '!' || c > '~' {
			return false
		}
	}
	return len(text) <= 256
}

func client(s *Session, args [][]byte) bool {
	what, n := lower(args[1]), len(args)
	switch {
	case what == "id" && n == 2:
		s.integer(int64(s.id))
	case what == "getname" && n == 2:
		s.value([]byte(s.name), s.name != "")
	case what == "setname" && n == 3:
		return s.named(args[2]) && s.ok()
	case what == "setinfo" && n == 4:
		return s.about(lower(args[2]), args[3])
	case what == "list" && n == 2:
		s.command.Kind = Clients
		return true
	case what == "info" && n == 2:
		s.verbatim(s.Describe(""))
	case (what == "no-evict" || what == "no-touch") && n == 3: // nothing is ever evicted, or counts accesses
		return s.ok()
	default:
		s.subcommand("CLIENT", args[1])
	}
	return false
}

// about notes the client's library.
func (s *Session) about(what string, value []byte) bool {
	switch {
	case !plain(value):
		s.failed("ERR " + what + " cannot contain spaces, newlines or special characters.")
		return false
	case what == "lib-name":
		s.library = string(value)
	case what == "lib-ver":
		s.release = string(value)
	default:
		s.failed("ERR Unrecognized option '" + what + "'")
		return false
	}
	s.changed = true
	return s.ok()
}

func (s *Session) subcommand(command string, what []byte) {
	s.failed(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP.",
		what[:min(len(what), 128)], command))
}

// settings are what CONFIG GET knows: names, and values.
func (s *Session) settings() [][2]string {
	return [][2]string{
		{"appendonly", "no"}, {"databases", fmt.Sprint(s.cfg.Databases)}, {"maxclients", fmt.Sprint(s.cfg.Most)},
		{"maxmemory", "0"}, {"proto-max-bulk-len", fmt.Sprint(s.cfg.Limits.Value)}, {"save", ""},
	}
}

func config(s *Session, args [][]byte) bool {
	switch {
	case is(args[1], "get") && len(args) > 2:
		var found [][2]string
		for _, x := range s.settings() {
			for _, pattern := range args[2:] {
				if matches([]byte(lower(pattern)), []byte(x[0])) {
					found = append(found, x)
					break
				}
			}
		}
		s.pairs(len(found))
		for _, x := range found {
			s.text(x[0])
			s.text(x[1])
		}
	case is(args[1], "set"):
		s.failed("ERR settings are the flags of farflash flash kv serve, and cannot be changed")
	default:
		s.subcommand("CONFIG", args[1])
	}
	return false
}

func commands(s *Session, args [][]byte) bool {
	if len(args) == 1 {
		s.array(len(s.table))
		for i := range s.table {
			s.definition(&s.table[i])
		}
		return false
	}
	switch what := lower(args[1]); {
	case what == "count" && len(args) == 2:
		s.integer(int64(len(s.table)))
	case what == "docs": // clients show it as a help, and go on without
		s.pairs(0)
	case what == "info":
		s.array(len(args) - 2)
		for _, name := range args[2:] {
			if d := s.find(name); d != nil {
				s.definition(d)
			} else {
				s.null()
			}
		}
	default:
		s.subcommand("COMMAND", args[1])
	}
	return false
}

// definition writes what COMMAND says of a command.
func (s *Session) definition(d *definition) {
	s.array(10)
	s.text(d.name)
	s.integer(int64(d.args))
	flags := strings.Fields(d.flags)
	s.set(len(flags))
	for _, f := range flags {
		s.simple(f)
	}
	for _, n := range d.keys {
		s.integer(int64(n))
	}
	s.set(0) // categories of access
	s.array(0)
	s.array(0)
	s.array(0)
}
