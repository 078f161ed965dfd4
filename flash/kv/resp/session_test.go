package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"farflash/internal/patience"
)

// books are databases as maps, and run a session's commands on them.
type books struct {
	s     *Session
	store []map[string]string
	fails string // the next command fails
	size  int    // bytes a time; 0: all
}

func newBooks(cfg *Config) *books {
	b := &books{s: NewSession(cfg, 7)}
	for range cfg.Databases {
		b.store = append(b.store, map[string]string{})
	}
	return b
}

// send has a session take bytes, and returns its output.
func (b *books) send(in []byte) []byte {
	var out []byte
	for len(in) > 0 {
		part := in
		if b.size > 0 {
			part = in[:min(b.size, len(in))]
		}
		n, c := b.s.Input(part)
		in = in[n:]
		if c != nil {
			o := b.run(c)
			b.s.Answer(c, &o)
		}
		over, _ := b.s.Over()
		if len(b.s.Output()) >= mostOutput || over || len(in) == 0 {
			out = append(out, b.s.Output()...)
			b.s.Sent()
		}
		if over {
			return out
		}
	}
	return out
}

func (b *books) run(c *Command) (o Outcome) {
	m := b.store[c.DB]
	if b.fails != "" {
		o.Err, b.fails = b.fails, ""
		return o
	}
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	switch c.Kind {
	case Size:
		o.N = uint64(len(m))
	case Flush:
		for i := range b.store {
			if c.Whole || i == c.DB {
				clear(b.store[i])
			}
		}
	case All, Scan: // a bucket is a key
		from, n := int(min(c.Cursor, uint64(len(all)))), len(all)
		if c.Kind == Scan {
			n = min(c.Buckets, len(all)-from)
		}
		for _, k := range all[from:][:n] {
			if !c.Found([]byte(k), b.s.cfg.Limits.Reply) {
				o.Err = "ERR too large"
			}
		}
		if from+n < len(all) {
			o.Cursor = uint64(from + n)
		}
	case Info:
		o.Text = "# Keyspace\r\n"
	case Clients:
		o.Text = b.s.Describe("1.2.3.4:5")
	default:
		for i := range c.Keys() {
			k := string(c.Key(i))
			old, there := m[k]
			value, action := c.Blind(i)
			if action != Keep {
				c.Done(i, there)
			} else {
				_, _ = c.Apply(i, []byte("another"), !there) // a decision that does not count
				value, action = c.Apply(i, []byte(old), there)
			}
			if action == Set {
				m[k] = string(value)
			} else if action == Remove {
				delete(m, k)
			}
		}
	}
	return o
}

func testConfig() *Config {
	return &Config{Limits: DefaultLimits(), Databases: 2, Most: 10}
}

// raw turns lines into bytes: \r, \n, \\ and \xHH stand for characters, ⏎ for CRLF, and {text*N}
// for N times the text.
func raw(t *testing.T, text string) []byte {
	t.Helper()
	var out []byte
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		line = strings.ReplaceAll(line, "⏎", `\r\n`)
		if from := strings.Index(line, "{"); from >= 0 {
			word, rest, _ := strings.Cut(line[from+1:], "}")
			what, times, _ := strings.Cut(word, "*")
			n, err := strconv.Atoi(times)
			if err != nil {
				t.Fatal(err)
			}
			line = line[:from] + strings.Repeat(what, n) + rest
		}
		x, err := strconv.Unquote(`"` + strings.ReplaceAll(line, `"`, `\"`) + `"`)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, x...)
	}
	return out
}

// shown turns bytes into lines.
func shown(b []byte) string {
	var out strings.Builder
	for line := range bytes.SplitSeq(b, []byte("\r\n")) {
		if len(line) > 300 {
			line = append(slices.Clone(line[:300]), fmt.Sprintf("... %d bytes", len(line))...)
		}
		quoted := strconv.Quote(string(line))
		out.WriteString(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// TestSteps runs sessions from files: "send" takes bytes, as raw has them, and shows the answer; "new" begins another
// session, with a password if one is given.
func TestSteps(t *testing.T) {
	datadriven.Walk(t, "testdata/steps", func(t *testing.T, path string) {
		for _, size := range []int{0, 1, 3} { // bytes a time
			b := newBooks(testConfig())
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				switch d.Cmd {
				case "new":
					cfg := testConfig()
					if d.HasArg("password") {
						var word string
						d.ScanArgs(t, "password", &word)
						cfg.Password = []byte(word)
					}
					if d.HasArg("value") {
						d.ScanArgs(t, "value", &cfg.Limits.Value)
						d.ScanArgs(t, "request", &cfg.Limits.Request)
					}
					b = newBooks(cfg)
					return ""
				case "fail":
					b.fails = strings.TrimSpace(d.Input)
					return ""
				case "send":
					b.size = size
					out := shown(b.send(raw(t, d.Input)))
					if over, err := b.s.Over(); over {
						out += fmt.Sprintf("\nover: %v", err)
					}
					return out + "\n"
				}
				t.Fatalf("%s: no such step", d.Cmd)
				return ""
			})
			if t.Failed() {
				return
			}
		}
	})
}

// replies reads replies, and returns their number. It fails for bytes that are no sequence of replies.
func replies(b []byte) (n int, err error) {
	for len(b) > 0 {
		rest, err := reply(b, 0)
		if err != nil {
			return n, err
		}
		b = rest
		n++
	}
	return n, nil
}

// reply reads one reply, and returns what follows.
func reply(b []byte, depth int) ([]byte, error) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 || depth > 5 {
		return nil, fmt.Errorf("no reply begins with %.40q", b)
	}
	n, err := strconv.Atoi(string(line[1:]))
	switch line[0] {
	case '+', '-':
		if bytes.ContainsAny(line, "\r\n") {
			return nil, fmt.Errorf("a line end within %q", line)
		}
		return rest, nil
	case '_':
		return rest, nil
	case ':':
		return rest, err
	case '$', '=':
		if line[0] == '$' && n == -1 {
			return rest, nil
		}
		if err != nil || n < 0 || len(rest) < n+2 || string(rest[n:n+2]) != "\r\n" {
			return nil, fmt.Errorf("no text of %d bytes: %.40q", n, rest)
		}
		return rest[n+2:], nil
	case '*', '~', '%':
		if line[0] == '%' {
			n *= 2
		}
		for range n {
			if rest, err = reply(rest, depth+1); err != nil {
				return nil, err
			}
		}
		return rest, err
	}
	return nil, fmt.Errorf("no reply begins with %q", line)
}

// FuzzSession verifies that the answer does not depend on how bytes are divided, that it is a sequence of replies, and
// that the memory stays within the limits.
func FuzzSession(f *testing.F) {
	for _, s := range []string{
		"PING\r\n", "*1\r\n$4\r\nPING\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
		"HELLO 3\r\nMGET a b\r\nCOMMAND\r\nCONFIG GET *\r\n", "set a \"\\x41\\n\"\r\nappend a 'x\\''\r\nincr n\r\n",
		"*2\r\n$3\r\nGET\r\n$70000\r\n", "*-1\r\n*0\r\n\r\nSCAN 0 MATCH a* COUNT 3\r\nKEYS [a-\r\n", "SELECT 1\r\nRESET\r\n",
		"MSET a 1 b 2 a 3\r\nGETDEL a\r\nDEL a b\r\nSET b c NX GET\r\nCLIENT LIST\r\nINFO\r\nFLUSHALL\r\nQUIT\r\n",
	} {
		f.Add([]byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		defer patience.Limit()()
		cfg := testConfig()
		cfg.Limits = Limits{Value: 64, Request: 256, Reply: 1 << 10, Args: 100, Inline: 200}
		whole := newBooks(cfg)
		want := whole.send(in)
		parts := newBooks(cfg)
		parts.size = int(size%40) + 1
		if got := parts.send(in); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes at a time: %q, not %q", parts.size, got, want)
		}
		if _, err := replies(want); err != nil {
			t.Fatalf("%q: %v", want, err)
		}
		if p := &parts.s.parser; len(p.data) > 256 || len(p.line) > 200 || len(p.ends) > 200 {
			t.Fatalf("%d bytes of arguments, %d of a line, %d arguments", len(p.data), len(p.line), len(p.ends))
		}
	})
}

// TestEachIsAnswered verifies that each command has one reply, with few and with many arguments.
func TestEachIsAnswered(t *testing.T) {
	for _, d := range table {
		for _, proto := range []string{"2", "3"} {
			for n := range 6 {
				b := newBooks(testConfig())
				b.send([]byte("HELLO " + proto + "\r\n"))
				line := d.name + strings.Repeat(" 1", n) + "\r\n"
				out := b.send([]byte(line))
				if k, err := replies(out); k != 1 || err != nil {
					t.Errorf("%q has %d replies: %v\n%q", line, k, err, out)
				}
			}
		}
	}
	if !slices.IsSortedFunc(table[:], func(a, b definition) int { return strings.Compare(a.name, b.name) }) {
		t.Error("the commands are not sorted")
	}
}

// TestReplyLimit verifies that a list of keys ends at the limit.
func TestReplyLimit(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.Reply = 100
	b := newBooks(cfg)
	for i := range 5 {
		b.send(fmt.Appendf(nil, "SET key%d x\r\n", i))
	}
	if out := string(b.send([]byte("KEYS *\r\n"))); out != "-ERR too large\r\n" {
		t.Errorf("%q", out)
	}
}

// TestNoAllocation verifies that commands allocate nothing once the session's buffers have grown.
func TestNoAllocation(t *testing.T) {
	s := NewSession(testConfig(), 1)
	in := []byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n")
	one := []byte("1")
	run := func() {
		for b := in; len(b) > 0; {
			n, c := s.Input(b)
			b = b[n:]
			if _, action := c.Blind(0); action == Keep {
				c.Apply(0, one, true)
			} else {
				c.Done(0, true)
			}
			s.Answer(c, &Outcome{})
		}
		s.Sent()
	}
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("%v allocations for three commands", n)
	}
}

// naive is matches by recursion.
func naive(pattern, key []byte) bool {
	switch {
	case len(pattern) == 0:
		return len(key) == 0
	case pattern[0] == '*':
		return naive(pattern[1:], key) || len(key) > 0 && naive(pattern, key[1:])
	case len(key) == 0:
		return false
	}
	ok, n := one(pattern, key[0])
	return ok && naive(pattern[n:], key[1:])
}

func TestPatterns(t *testing.T) {
	for _, x := range []struct {
		pattern, yes, no string
	}{
		{"*", " a hello", ""}, {"h?llo", "hello hallo", "hllo heello"}, {"h*llo", "hllo heeello", "hell"},
		{"h[ae]llo", "hello hallo", "hillo"}, {"h[^e]llo", "hallo hbllo", "hello"}, {"h[a-b]llo", "hallo hbllo", "hcllo"},
		{"h[b-a]llo", "hallo", "hcllo"}, {`h\*llo`, "h*llo", "hello"}, {"a*b*c", "abc aXbYc abbcc", "acb ab"},
		{"[abc", "a b", "d"}, {`[\]]`, "]", `\`}, {"user:*:name", "user:1:name user::name", "user:1:names"}, {`\`, `\`, "a"},
	} {
		for _, key := range strings.Split(x.yes, " ") {
			if !matches([]byte(x.pattern), []byte(key)) {
				t.Errorf("%s does not match %q", x.pattern, key)
			}
		}
		for _, key := range strings.Fields(x.no) {
			if matches([]byte(x.pattern), []byte(key)) {
				t.Errorf("%s matches %q", x.pattern, key)
			}
		}
	}
	// Backtracking would take longer than the universe has.
	if matches(bytes.Repeat([]byte("a*"), 100), append(bytes.Repeat([]byte("a"), 1000), 'b')) != true {
		t.Error("a*a*... does not match")
	}
	if matches(append(bytes.Repeat([]byte("a*"), 100), 'c'), bytes.Repeat([]byte("a"), 1000)) {
		t.Error("a*a*...c matches")
	}
}

func FuzzPattern(f *testing.F) {
	f.Add([]byte("a*[b-d]?\\*"), []byte("axxbc*"))
	f.Fuzz(func(t *testing.T, pattern, key []byte) {
		defer patience.Limit()()
		pattern, key = pattern[:min(len(pattern), 10)], key[:min(len(key), 10)]
		if matches(pattern, key) != naive(pattern, key) {
			t.Fatalf("%q and %q: %v", pattern, key, matches(pattern, key))
		}
	})
}

// TestIntegers verifies the form of numbers against strconv's, for numbers that are written as strconv writes them.
func TestIntegers(t *testing.T) {
	for _, x := range []string{"0", "1", "-1", "42", "-9223372036854775808", "9223372036854775807", "9223372036854775808",
		"-9223372036854775809", "99999999999999999999", "", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "0x1", "--1"} {
		want, err := strconv.ParseInt(x, 10, 64)
		fine := err == nil && strconv.FormatInt(want, 10) == x
		if got, ok := integer([]byte(x)); ok != fine || ok && got != want {
			t.Errorf("%q: %d %v, not %d %v", x, got, ok, want, fine)
		}
	}
}
