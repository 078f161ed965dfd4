package docs_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"farflash/flash/mount"
	"farflash/internal/patience"
)

var update = flag.Bool("update", false, "write the output that commands really have into the pages")

// root is the repository's root, relative to this folder.
const root = ".."

// page is one Markdown file.
type page struct {
	path   string // relative to root, with slashes
	lines  []string
	blocks []block
}

// block is a fenced block of a page.
type block struct {
	first int    // index of the line after the opening fence
	last  int    // index of the closing fence
	info  string // info string of the opening fence
}

func (b block) language() string {
	language, _, _ := strings.Cut(b.info, " ")
	return language
}

var titled = regexp.MustCompile(`title="([^"]+)"`)

// title returns the name of the file that a block shows, "" if it shows none.
func (b block) title() string {
	if m := titled.FindStringSubmatch(b.info); m != nil {
		return m[1]
	}
	return ""
}

// pages reads all Markdown files of the repository.
func pages(t *testing.T) []*page {
	t.Helper()
	var out []*page
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root &&
			(strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "runs", "tools"}, d.Name())) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(p) != ".md" {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		out = append(out, parse(t, filepath.ToSlash(name), string(text)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("only %d pages found", len(out))
	}
	return out
}

func parse(t *testing.T, name, text string) *page {
	t.Helper()
	p := &page{path: name, lines: strings.Split(text, "\n")}
	open := -1
	for i, line := range p.lines {
		switch {
		case !strings.HasPrefix(line, "```"):
		case open < 0:
			open = i
			p.blocks = append(p.blocks, block{first: i + 1, info: strings.TrimPrefix(line, "```")})
		default:
			p.blocks[len(p.blocks)-1].last = i
			open = -1
		}
	}
	if open >= 0 {
		t.Fatalf("%s:%d: a fenced block is not closed", name, open+1)
	}
	return p
}

// prose calls f with each line outside fenced blocks.
func (p *page) prose(f func(number int, line string)) {
	b := 0
	for i, line := range p.lines {
		for b < len(p.blocks) && i > p.blocks[b].last {
			b++
		}
		if b < len(p.blocks) && i >= p.blocks[b].first-1 {
			continue
		}
		f(i+1, line)
	}
}

var built struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// binary builds the program once and returns its folder.
func binary(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "farflash-docs-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-pgo=off", "-o", built.dir+string(filepath.Separator), "./cmd/farflash")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// shell runs a command in a folder and returns its standard output.
func shell(t *testing.T, dir, where, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+binary(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1",
		"COLUMNS=120", "LC_ALL=C.UTF-8",
		"XDG_CACHE_HOME="+filepath.Join(dir, ".cache")) // a page's studies reuse the trials that the page has computed
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	const brokenPipe = 128 + 13 // a command whose output was cut short by "head"
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != brokenPipe {
		t.Fatalf("%s: %s\n%v\n%s%s", where, command, err, out.String(), diagnostics.String())
	}
	t.Logf("%s: %.2f s of processor time: %s", where,
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), command)
	return out.String()
}

// mine reports whether a command runs the program.
func mine(command string) bool {
	return strings.HasPrefix(command, "farflash ") || strings.HasPrefix(command, "go run ./cmd/farflash ")
}

// unstable matches the parts of an output that are not compared, the run times. Digests are compared: an outdated
// digest shows that a page was made by a different program.
var unstable = regexp.MustCompile(`took [^,\n]+, [0-9.]+[kM]? events/s`)

func stable(line string) string {
	return unstable.ReplaceAllString(strings.TrimRight(line, " "), "*")
}

// TestCommands runs the commands that pages show, from the top of a page to its end, in a folder that contains only the
// files of the page's titled blocks.
//
//   - A block of language sh whose first command is the program's is run as a whole.
//   - In a block of language console, lines that start with "$ " are run one after the other, and their standard output
//     is compared with the lines that follow. A line "..." stands for any lines.
//   - A block marked fuse ("sh fuse") is run where this machine can mount.
//   - A block marked long ("console long") is run only with FARFLASH_LONG=1, and so are the blocks that need its files.
//
// With -update the output is written into the page.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every documented command")
	}
	ran := 0
	for _, p := range pages(t) {
		if !slices.ContainsFunc(p.blocks, runnable) || p.path == "docs/reference/cli.md" {
			continue // the examples of the reference are independent; cli tests each verb
		}
		ran++
		t.Run(p.path, func(t *testing.T) {
			if !*update {
				t.Parallel()
			}
			p.run(t)
		})
	}
	if ran == 0 {
		t.Fatal("no page with commands found")
	}
}

// long reports whether a block's commands take too long for a test that always runs.
func (b block) long() bool { return slices.Contains(strings.Fields(b.info), "long") }

func runnable(b block) bool { return b.language() == "sh" || b.language() == "console" }

func (p *page) run(t *testing.T) {
	dir := t.TempDir()
	var out []string
	at := 0
	for _, b := range p.blocks {
		out = append(out, p.lines[at:b.first]...)
		body := p.lines[b.first:b.last]
		where := fmt.Sprintf("%s:%d", p.path, b.first+1)
		switch name := b.title(); {
		case name != "":
			file := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.Join(body, "\n")+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		case b.long() && !patience.Long(t):
			t.Logf("%s: not run: FARFLASH_LONG is not set", where)
		case slices.Contains(strings.Fields(b.info), "fuse") && mount.Available() != nil:
			t.Logf("%s: not run: %v", where, mount.Available())
		case b.language() == "sh" && mine(body[0]):
			script := strings.ReplaceAll(strings.Join(body, "\n"), "go run ./cmd/farflash ", "farflash ")
			script = regexp.MustCompile(`(?m)^go test .*$`).ReplaceAllString(script, "")
			shell(t, dir, where, script)
		case b.language() == "console":
			body = p.session(t, dir, b)
		}
		out = append(out, body...)
		at = b.last
	}
	out = append(out, p.lines[at:]...)
	if *update && !slices.Equal(out, p.lines) {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(p.path)), []byte(strings.Join(out, "\n")),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// session runs the commands of a console block and returns the block with their actual output.
func (p *page) session(t *testing.T, dir string, b block) []string {
	var out []string
	for i := b.first; i < b.last; {
		command, ok := strings.CutPrefix(p.lines[i], "$ ")
		where := fmt.Sprintf("%s:%d", p.path, i+1)
		if !ok {
			t.Fatalf("%s: a console block begins with a command", where)
		}
		out = append(out, p.lines[i])
		i++
		from := i
		for i < b.last && !strings.HasPrefix(p.lines[i], "$ ") {
			i++
		}
		want := p.lines[from:i]
		got := strings.Split(strings.TrimRight(shell(t, dir, where, command), "\n"), "\n")
		if len(got) == 1 && got[0] == "" {
			got = nil
		}
		if !match(want, got) {
			if !*update {
				t.Errorf("%s: %s\nprints\n%s\nbut the page has\n%s\n(go test ./docs -run TestCommands -update writes "+
					"it into the page)",
					where, command, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			want = abridge(want, got)
		}
		out = append(out, want...)
	}
	return out
}

// match compares line by line; "..." matches any number of lines.
func match(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for n := 0; n <= len(got); n++ {
			if match(want[1:], got[n:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && stable(want[0]) == stable(got[0]) && match(want[1:], got[1:])
}

// abridge shortens an output like the page did: it keeps the same number of lines before a "..." and after it.
func abridge(want, got []string) []string {
	first, last := slices.Index(want, "..."), len(want)-1
	for last >= 0 && want[last] != "..." {
		last--
	}
	if first < 0 || first+len(want)-1-last >= len(got) {
		return got
	}
	tail := got[len(got)-(len(want)-1-last):]
	return slices.Concat(got[:first], []string{"..."}, tail)
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// slug returns the anchor of a heading, by the rules of forges.
func slug(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// TestLinks verifies that the targets of links between pages exist.
func TestLinks(t *testing.T) {
	all := pages(t)
	anchors := map[string][]string{}
	for _, p := range all {
		p.prose(func(_ int, line string) {
			if m := heading.FindStringSubmatch(line); m != nil {
				anchors[p.path] = append(anchors[p.path], slug(m[1]))
			}
		})
	}
	for _, p := range all {
		p.prose(func(n int, line string) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
					continue
				}
				to := p.path
				if target != "" {
					to = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), target))
					if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
						t.Errorf("%s:%d: the link %s leads nowhere", p.path, n, m[1])
						continue
					}
				}
				if anchor != "" && !slices.Contains(anchors[to], anchor) {
					t.Errorf("%s:%d: %s has no heading for the link %s", p.path, n, to, m[1])
				}
			}
		})
	}
}

// TestWords verifies that the pages together stay short enough to be read, and decision records too. A word has a
// letter.
func TestWords(t *testing.T) {
	const most, mostOfRecord = 110_000, 750
	sum := 0
	for _, p := range pages(t) {
		n := 0
		for _, line := range p.lines {
			for _, word := range strings.Fields(line) {
				if strings.ContainsFunc(word, unicode.IsLetter) {
					n++
				}
			}
		}
		if sum += n; n > mostOfRecord && strings.HasPrefix(p.path, "docs/adr/") {
			t.Errorf("%s has %d words; a record has at most %d", p.path, n, mostOfRecord)
		}
	}
	if t.Logf("%d words", sum); sum > most {
		t.Errorf("the pages have %d words; the limit is %d", sum, most)
	}
}

// TestReachable verifies that every page of docs is linked from some other page.
func TestReachable(t *testing.T) {
	all := pages(t)
	linked := map[string]bool{"README.md": true}
	for _, p := range all {
		p.prose(func(_ int, line string) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target, _, _ := strings.Cut(m[1], "#")
				linked[filepath.ToSlash(filepath.Join(filepath.Dir(p.path), target))] = true
			}
		})
	}
	for _, p := range all {
		if !linked[p.path] && !linked[filepath.ToSlash(filepath.Dir(p.path))] {
			t.Errorf("no page links to %s", p.path)
		}
	}
}
