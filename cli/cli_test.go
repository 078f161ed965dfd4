package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"farflash/flash/mount"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"farflash": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs testdata/script. Each script is a shell session.
func TestScripts(t *testing.T) { scripts(t, filepath.Join("testdata", "script")) }

// TestServedFiles runs the first part of flash-fs.txtar again while a daemon serves the pool: flash fs does and says
// the same.
func TestServedFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no flash")
	}
	text, err := os.ReadFile(filepath.Join("testdata", "script", "flash-fs.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	first, rest, ok := strings.Cut(string(text), "farflash flash fs ls data.img\n")
	alike, _, same := strings.Cut(rest, "# In use by another process")
	_, files, there := strings.Cut(rest, "\n-- ")
	if !ok || !same || !there {
		t.Fatal("flash-fs.txtar has changed")
	}
	script := first + `exec farflash flash serve data.img --listen 127.0.0.1:0 --ready ready &daemon&
await ready
farflash flash fs ls data.img
` + alike + `
kill -INT daemon
wait daemon
stdout 'stopped; everything is on the devices'
none *.socket
farflash flash check data.img
stdout '; 0 violations'
-- ` + files
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "served.txtar"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	scripts(t, dir)
}

// scripts runs the scripts in a directory.
func scripts(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			root, err := filepath.Abs("..")
			if err != nil {
				return err
			}
			e.Setenv("ROOT", root)
			e.Setenv("NEWLINE", "two\nlines")
			e.Setenv("SHARED", filepath.Join(root, "..", "shared"))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "shared":
				_, err := os.Stat(filepath.Join("..", "..", "shared", "cases"))
				return err == nil, nil
			case "fuse":
				return mount.Available() == nil, nil
			case "long":
				return patience.LongNamed("cli"), nil
			}
			return false, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// json FILE KEY... checks that a file is a single JSON document with these keys.
			"json": func(ts *testscript.TestScript, neg bool, args []string) {
				var doc map[string]any
				d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
				if err := d.Decode(&doc); err != nil {
					ts.Fatalf("%s: %v", args[0], err)
				}
				if d.More() {
					ts.Fatalf("%s: more follows the document", args[0])
				}
				for _, k := range args[1:] {
					if _, ok := doc[k]; ok == neg {
						ts.Fatalf("%s: key %s", args[0], k)
					}
				}
			},
			// await PATTERN waits until a file matches.
			"await": func(ts *testscript.TestScript, neg bool, args []string) {
				for range 6000 {
					if found, err := filepath.Glob(ts.MkAbs(args[0])); err == nil && len(found) > 0 {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				ts.Fatalf("nothing matches %s", args[0])
			},
			// rename PATTERN NAME renames the one file that matches.
			"rename": func(ts *testscript.TestScript, neg bool, args []string) {
				found, err := filepath.Glob(ts.MkAbs(args[0]))
				if err != nil || len(found) != 1 {
					ts.Fatalf("%v match %s", found, args[0])
				}
				ts.Check(os.Rename(found[0], ts.MkAbs(args[1])))
			},
			// same A B NAME... checks that two directories hold the same bytes, except in files with these names.
			"same": func(ts *testscript.TestScript, neg bool, args []string) {
				a, b := files(ts, ts.MkAbs(args[0]), args[2:]), files(ts, ts.MkAbs(args[1]), args[2:])
				for name, text := range a {
					if other, ok := b[name]; !ok || other != text {
						ts.Fatalf("%s differs between %s and %s", name, args[0], args[1])
					}
				}
				if len(a) != len(b) || len(a) < 3 {
					ts.Fatalf("%s has %d files, %s has %d", args[0], len(a), args[1], len(b))
				}
			},
			// damage DIR changes a digit in one of the files below a directory.
			"damage": func(ts *testscript.TestScript, neg bool, args []string) {
				dir := ts.MkAbs(args[0])
				all := files(ts, dir, nil)
				name := slices.Sorted(maps.Keys(all))[0]
				text := all[name]
				at := strings.LastIndexAny(text, "0123456789")
				digit := '0' + (text[at]-'0'+1)%10
				ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(text[:at]+string(digit)+text[at+1:]), 0o666))
			},
			// random FILE BYTES creates a file in which no two pages are equal.
			"random": func(ts *testscript.TestScript, neg bool, args []string) {
				n, err := strconv.Atoi(args[1])
				ts.Check(err)
				b, draw := make([]byte, n), rng.NewStream(1, args[0])
				for i := range b {
					b[i] = byte(draw.Uint64())
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o666))
			},
			// ruin FILE PAGE... changes a byte of each sector of pages of 4 KiB.
			"ruin": func(ts *testscript.TestScript, neg bool, args []string) {
				f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR, 0)
				ts.Check(err)
				b := make([]byte, 4096)
				for _, page := range args[1:] {
					n, err := strconv.ParseInt(page, 10, 64)
					ts.Check(err)
					_, err = f.ReadAt(b, n*4096)
					ts.Check(err)
					for i := 0; i < len(b); i += 512 {
						b[i] ^= 0x5a
					}
					_, err = f.WriteAt(b, n*4096)
					ts.Check(err)
				}
				ts.Check(f.Close())
			},
			// feed FIFO writes more than a pipe's buffer holds, so that the reader must have started, and leaves the
			// pipe open.
			"feed": func(ts *testscript.TestScript, neg bool, args []string) {
				f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
				ts.Check(err)
				ts.Defer(func() { _ = f.Close() }) // the reader has exited
				_, err = f.Write(bytes.Repeat([]byte("data"), 1<<20))
				ts.Check(err)
			},
			// none PATTERN checks that no file matches.
			"none": func(ts *testscript.TestScript, neg bool, args []string) {
				if found, err := filepath.Glob(ts.MkAbs(args[0])); err != nil || len(found) > 0 {
					ts.Fatalf("%v match %s", found, args[0])
				}
			},
		},
	})
}

// files reads all files below a directory, except those with the given names.
func files(ts *testscript.TestScript, dir string, but []string) map[string]string {
	out := map[string]string{}
	ts.Check(filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || slices.Contains(but, d.Name()) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out[name] = string(text)
		return err
	}))
	return out
}

// call runs the program in the test's process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// TestVerbs verifies that every verb has help with a sentence, and that the flags of the contract exist.
func TestVerbs(t *testing.T) {
	p := &program{}
	for _, cmd := range p.root().Commands() {
		code, out, _ := call(cmd.Name(), "--help")
		if code != 0 || len(out) < 40 {
			t.Errorf("%s --help: exit code %d, %d bytes", cmd.Name(), code, len(out))
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short help is %q", cmd.Name(), cmd.Short)
		}
	}
	for verb, own := range map[string][]string{"run": nil,
		"compare": {"--cache", "--no-cache", "--metric", "--relevant"},
		"sweep":   {"--cache", "--no-cache", "--metric", "--vary", "--shard"}} {
		_, out, _ := call(verb, "--help")
		for _, flag := range append(own, "--set", "--seed", "--reps", "--until", "-o, --output", "--json", "--quiet",
			"-j, --jobs", "--fail-if") {
			if !strings.Contains(out, flag) {
				t.Errorf("%s has no flag %s", verb, flag)
			}
		}
	}
}

// TestStartUp verifies that the program does no expensive work before it has parsed its arguments.
func TestStartUp(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	bin := filepath.Join(t.TempDir(), "farflash")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	if out, err := exec.Command("go", "build", "-pgo=off", "-o", bin,
		"farflash/cmd/farflash").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	best := time.Hour
	for range 10 {
		start := time.Now()
		if err := exec.Command(bin, "version").Run(); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	t.Logf("farflash version takes %v", best)
	if best > 100*time.Millisecond {
		t.Errorf("farflash version takes %v", best)
	}
}
