package flashcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/cfs/live"
	"farflash/flash/cfs/transfer"
	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/internal/term"
	"farflash/numeric/units"
)

// super is the user for access to a pool's file system from the command line: the superuser, because anyone who can
// write to the devices can change everything in it.
var super = cfs.Cred{}

// flashFS returns the verb for the file system of a pool.
func (p *program) flashFS() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fs",
		Short: "Files in a pool",
		Long: `List, read, write and remove files of a pool. While a daemon serves the pool, it
executes these commands, for its own user and the superuser. A file that is
removed keeps its data until the last client closes it.`,
		Args: verb.Unknown,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.fsList(), p.fsPut(), p.fsGet(), p.fsRemove(), p.fsMkdir(), p.fsStat(), p.fsFree(), p.fsMove(),
		p.fsTruncate())
	return cmd
}

// fsFlags holds the flags that these verbs share.
type fsFlags struct {
	pool    poolFlags
	also    []string
	control string
	asJSON  bool
}

func (f *fsFlags) register(cmd *cobra.Command, withJSON bool) {
	f.pool.register(cmd, mostMemory)
	cmd.Flags().StringArrayVar(&f.also, "also", nil, "another `device` of the pool (repeatable)")
	registerControl(cmd, &f.control)
	if withJSON {
		cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	}
}

// registerControl adds the flag for the socket of a daemon.
func registerControl(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "control", "", "the daemon's socket, a `path`")
}

// with calls do with the file system of a pool: that of the daemon that serves it or, if there is none, after opening
// the pool, which is closed afterwards.
func (f *fsFlags) with(p *program, device string, do func(*live.Files) error) (err error) {
	devices := append([]string{device}, f.also...)
	files, err := live.Dial(f.control, devices...)
	switch {
	case errors.Is(err, live.ErrAbsent):
		return f.open(p, devices, do)
	case err != nil:
		return verb.BadInput(err)
	}
	return errors.Join(explain(device, do(files)), files.Close())
}

// open is with for a pool that no daemon serves.
func (f *fsFlags) open(p *program, devices []string, do func(*live.Files) error) error {
	return f.tree(p, devices, func(files *cfs.FS) error { return explain(devices[0], do(live.Local(files))) })
}

// tree is open for the file system itself.
func (f *fsFlags) tree(p *program, devices []string, do func(*cfs.FS) error) (err error) {
	device := devices[0]
	opened, _, err := pool.Open(f.pool.options(), devices...)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return verb.BadInput(fmt.Errorf("%w, which is no daemon that can be asked at %s: give its socket with "+
			"--control, wait until it ends, or stop it", err, cmp.Or(f.control, live.Socket(device))))
	case err != nil:
		return refused(err, append([]string{device}, f.also...))
	}
	defer func() {
		if closing := opened.Close(); closing != nil {
			err = errors.Join(err, verb.Failed(fmt.Errorf("%s: %w", device, closing)))
		}
	}()
	noteFound(p.Note, device, opened)
	files, err := cfs.Open(opened, cfs.Config{Now: time.Now})
	switch {
	case errors.Is(err, cfs.ErrNoFS):
		return verb.BadInput(fmt.Errorf("%s: %w; format a pool with one: farflash flash format", device, err))
	case err != nil:
		return verb.Failed(fmt.Errorf("%s: %w", device, err))
	}
	if x := files.Found(); x.Nameless > 0 {
		p.Note("%s: removed files without a name, which were being written or removed when the pool was last "+
			"closed: %d", device, x.Nameless)
	}
	return do(files)
}

// explain adds the device to an error of the file system, and whether the input or the pool is at fault.
func explain(device string, err error) error {
	var known *verb.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, ctl.ErrFull), errors.Is(err, syscall.EIO), errors.Is(err, ctl.ErrReadOnly),
		errors.Is(err, ctl.ErrDamaged),
		errors.Is(err, transfer.ErrInterrupted), errors.Is(err, transfer.ErrLocal):
		return verb.Failed(fmt.Errorf("%s: %w", device, err))
	}
	return verb.BadInput(fmt.Errorf("%s: %w", device, err))
}

// formatFiles creates a file system in a newly formatted pool and, unless disk is empty, one file of size bytes.
func formatFiles(o pool.Options, disk string, size int64, devices ...string) error {
	opened, _, err := pool.Open(o, devices...)
	if err != nil {
		return err
	}
	c := cfs.Config{Now: time.Now}
	fill := func() error {
		if err := cfs.Format(opened, c); err != nil || disk == "" {
			return err
		}
		tree, err := cfs.Open(opened, c)
		if err != nil {
			return err
		}
		f, err := tree.Create(super, disk, 0o600, size)
		if err != nil {
			return err
		}
		return f.Close()
	}
	return errors.Join(fill(), opened.Close())
}

// fileEntry is a file in JSON output.
type fileEntry struct {
	Path  string `json:"path"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Size  int64  `json:"size"`
	Mode  string `json:"mode"`
	UID   uint32 `json:"uid"`
	GID   uint32 `json:"gid"`
	Time  string `json:"time"`
	Inode uint32 `json:"inode"`
}

func entryOf(i cfs.Status) fileEntry {
	return fileEntry{i.Path, i.Name, i.Kind.String(), i.Size, fmt.Sprintf("%04o", i.Perm), i.UID, i.GID,
		i.Time.Format(time.RFC3339), i.Inode}
}

// modeText formats permissions like ls -l.
func modeText(i cfs.Status) string {
	text := []byte("-rwxrwxrwx")
	if i.Kind == cfs.Directory {
		text[0] = 'd'
	}
	for bit := range 9 {
		if i.Perm>>(8-bit)&1 == 0 {
			text[1+bit] = '-'
		}
	}
	return string(text)
}

func (p *program) fsList() *cobra.Command {
	var f fsFlags
	cmd := &cobra.Command{
		Use:   "ls POOL [PATH]",
		Short: "List a directory",
		Long:  `List a directory or a file of a pool, in order of name.`,
		Example: `  farflash flash fs ls data.img
  farflash flash fs ls data.img /backup --json`,
		Args: verb.Arguments(1, 2, "a pool's device, and optionally a path in it"),
		RunE: func(_ *cobra.Command, args []string) error {
			at := "/"
			if len(args) > 1 {
				at = args[1]
			}
			return f.with(p, args[0], func(files *live.Files) error {
				all, err := files.Do(context.Background(), live.Request{Op: live.List, Path: at}, nil, nil)
				if err != nil {
					return err
				}
				if f.asJSON {
					entries := make([]fileEntry, 0, len(all.Entries))
					for _, x := range all.Entries {
						entries = append(entries, entryOf(x))
					}
					return p.JSON(map[string]any{"path": "/" + strings.Trim(at, "/"), "entries": entries})
				}
				t := term.NewTable(term.Left("mode"), term.Right("owner"), term.Right("group"), term.Right("bytes"),
					term.Left("changed"), term.Left("name"))
				for _, x := range all.Entries {
					name := x.Name
					if x.Kind == cfs.Directory {
						name += "/"
					}
					t.Row(modeText(x), fmt.Sprint(x.UID), fmt.Sprint(x.GID), strconv.FormatInt(x.Size, 10),
						x.Time.Format(time.DateTime), name)
				}
				if t.Rows() == 0 {
					return nil
				}
				return verb.Failed(t.Write(p.Out, p.Style()))
			})
		},
	}
	f.register(cmd, true)
	return cmd
}

// ownFlags holds the owner and the permissions of a new file or directory.
type ownFlags struct {
	mode     string
	uid, gid uint32
}

func (o *ownFlags) register(cmd *cobra.Command, mode string) {
	cmd.Flags().StringVar(&o.mode, "mode", mode, "permissions in `octal`, as for chmod")
	cmd.Flags().Uint32Var(&o.uid, "owner", 0, "owner's user ID, a `number`")
	cmd.Flags().Uint32Var(&o.gid, "group", 0, "owner's group ID, a `number`")
}

func (o *ownFlags) perm() (uint16, error) {
	n, err := strconv.ParseUint(o.mode, 8, 16)
	if err != nil || n > 0o777 {
		return 0, verb.Usagef("--mode %q: give three octal digits, as 640", o.mode)
	}
	return uint16(n), nil
}

func (p *program) fsMkdir() *cobra.Command {
	var f fsFlags
	var own ownFlags
	cmd := &cobra.Command{
		Use:   "mkdir POOL PATH...",
		Short: "Create directories",
		Long:  `Create directories in a pool. They are durable when the command returns.`,
		Example: `  farflash flash fs mkdir data.img /backup /backup/monday
  farflash flash fs mkdir data.img /private --mode 700 --owner 1000`,
		Args: verb.Arguments(2, -1, "a pool's device, and paths in it"),
		RunE: func(_ *cobra.Command, args []string) error {
			perm, err := own.perm()
			if err != nil {
				return err
			}
			return f.with(p, args[0], func(files *live.Files) error {
				for _, at := range args[1:] {
					if err := files.Change(live.Request{Op: live.Mkdir, Path: at, Perm: perm, UID: own.uid,
						GID: own.gid}); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.register(cmd, false)
	own.register(cmd, "755")
	return cmd
}

func (p *program) fsPut() *cobra.Command {
	var f fsFlags
	var own ownFlags
	replace := false
	cmd := &cobra.Command{
		Use:   "put POOL FILE PATH",
		Short: "Copy a file into a pool",
		Long: `Copy a file, or standard input (-), into a pool. The file is named once all of it
is durable: after an interruption or a crash it is complete or absent. Zeros
take no space.`,
		Example: `  farflash flash fs put data.img disk.raw /disk
  tar c src | farflash flash fs put data.img - /src.tar --replace`,
		Args: verb.Arguments(3, 3, "a pool's device, a file or - for standard input, and a path in the pool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			perm, err := own.perm()
			if err != nil {
				return err
			}
			in := p.In
			if args[1] != "-" {
				file, err := os.Open(args[1])
				if err != nil {
					return verb.BadInput(err)
				}
				defer file.Close()
				switch st, err := file.Stat(); {
				case err != nil:
					return verb.BadInput(err)
				case st.IsDir():
					return verb.BadInput(fmt.Errorf("%s is a directory; give a file", args[1]))
				}
				in = file
			}
			p.Keeping()
			return f.with(p, args[0], func(files *live.Files) error {
				if _, err := files.Stat(args[2]); err == nil && !replace {
					return fmt.Errorf("%s: %w; --replace replaces it", args[2], fs.ErrExist)
				} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				_, err := files.Do(cmd.Context(), live.Request{Op: live.Put, Path: args[2], Perm: perm, UID: own.uid,
					GID: own.gid, Replace: replace}, in, nil)
				return err
			})
		},
	}
	f.register(cmd, false)
	own.register(cmd, "644")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an existing file atomically")
	return cmd
}

func (p *program) fsGet() *cobra.Command {
	var f fsFlags
	replace := false
	cmd := &cobra.Command{
		Use:   "get POOL PATH [FILE]",
		Short: "Copy a file out of a pool",
		Long: `Copy a file out of a pool, to the working directory, a file, or standard output
(-). The file appears only when all of it has been read.`,
		Example: `  farflash flash fs get data.img /src.tar
  farflash flash fs get data.img /src.tar - | tar t`,
		Args: verb.Arguments(2, 3, "a pool's device, a path in it, and optionally a file or - for standard output"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := path.Base(args[1])
			if len(args) > 2 {
				to = args[2]
			}
			p.Keeping()
			return f.with(p, args[0], func(files *live.Files) error {
				read := func(out io.Writer) error {
					_, err := files.Do(cmd.Context(), live.Request{Op: live.Get, Path: args[1]}, nil, out)
					return err
				}
				if to == "-" {
					return read(p.Data)
				}
				err := transfer.Save(to, replace, read)
				if errors.Is(err, fs.ErrExist) {
					return fmt.Errorf("%w; --replace replaces it", err)
				}
				return err
			})
		},
	}
	f.register(cmd, false)
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an existing file")
	return cmd
}

// isRoot reports whether a path names the root directory.
func isRoot(at string) bool { return strings.Trim(at, "/") == "" }

func (p *program) fsRemove() *cobra.Command {
	var f fsFlags
	recursive := false
	cmd := &cobra.Command{
		Use:   "rm POOL PATH...",
		Short: "Remove files and empty directories",
		Long: `Remove files and empty directories from a pool. Their space is free at once.
--recursive removes directories with their contents.`,
		Example: `  farflash flash fs rm data.img /src.tar
  farflash flash fs rm data.img /backup --recursive`,
		Args: verb.Arguments(2, -1, "a pool's device, and paths in it"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.with(p, args[0], func(files *live.Files) error {
				for _, at := range args[1:] {
					if isRoot(at) {
						return verb.Usagef("%s is the root directory and cannot be removed; name its contents", at)
					}
					err := files.Change(live.Request{Op: live.Remove, Path: at, Recursive: recursive})
					if errors.Is(err, cfs.ErrNotEmpty) {
						err = fmt.Errorf("%w; --recursive removes its contents too", err)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.register(cmd, false)
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "remove directories with their contents")
	return cmd
}

func (p *program) fsStat() *cobra.Command {
	var f fsFlags
	cmd := &cobra.Command{
		Use:   "stat POOL PATH...",
		Short: "Show a file's attributes and addresses",
		Long: `Show files and directories: size, allocated space, owner, and addresses in the
pool. A file's bytes are at consecutive addresses from its base, and it can grow
to the size of its block without being moved.`,
		Example: `  farflash flash fs stat data.img /disk
  farflash flash fs stat data.img /disk /backup --json`,
		Args: verb.Arguments(2, -1, "a pool's device, and paths in it"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.with(p, args[0], func(files *live.Files) error {
				type stated struct {
					fileEntry
					Used  int64  `json:"used"`
					Base  string `json:"base"`
					Block uint64 `json:"block"`
					Drain bool   `json:"drained,omitempty"`
				}
				var all []stated
				t := term.NewTable(term.Left("path"), term.Left("kind"), term.Left("mode"), term.Right("owner"),
					term.Right("group"), term.Right("bytes"), term.Right("used"), term.Right("block"),
					term.Right("base"), term.Left("changed"))
				for _, at := range args[1:] {
					x, err := files.Stat(at)
					if err != nil {
						return err
					}
					base := fmt.Sprintf("0x%x", x.Base)
					all = append(all, stated{entryOf(x), x.Used, base, x.Block, x.Drained})
					kind := x.Kind.String()
					if x.Drained {
						kind = "drained " + kind
					}
					t.Row(x.Path, kind, modeText(x), fmt.Sprint(x.UID), fmt.Sprint(x.GID),
						strconv.FormatInt(x.Size, 10), strconv.FormatInt(x.Used, 10),
						strconv.FormatUint(x.Block, 10), base, x.Time.Format(time.DateTime))
				}
				if f.asJSON {
					return p.JSON(map[string]any{"entries": all})
				}
				return verb.Failed(t.Write(p.Out, p.Style()))
			})
		},
	}
	f.register(cmd, true)
	return cmd
}

func (p *program) fsFree() *cobra.Command {
	var f fsFlags
	cmd := &cobra.Command{
		Use:   "df POOL",
		Short: "Show a pool's free space",
		Long: "Show how much of a pool is in use, and by how many files. Unwritten parts take no\nspace, so files can " +
			"be larger than the pool.",
		Example: `  farflash flash fs df data.img
  farflash flash fs df a.img --also b.img --json`,
		Args: verb.Arguments(1, 1, "a pool's device"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.with(p, args[0], func(files *live.Files) error {
				y, err := files.Do(context.Background(), live.Request{Op: live.Usage}, nil, nil)
				if err != nil {
					return err
				}
				u := y.Usage
				if f.asJSON {
					return p.JSON(map[string]any{
						"capacity": u.Capacity * ctl.Page, "used": u.Used * ctl.Page,
						"free": (u.Capacity - u.Used) * ctl.Page, "files": u.Files, "directories": u.Directories,
					})
				}
				t := term.NewTable(term.Right("capacity"), term.Right("used"), term.Right("free"),
					term.Right("in use"), term.Right("files"), term.Right("directories"))
				size := func(pages int64) string { return term.Size(float64(pages * ctl.Page)) }
				t.Row(size(u.Capacity), size(u.Used), size(u.Capacity-u.Used),
					term.Percent(float64(u.Used)/float64(u.Capacity)), strconv.Itoa(u.Files),
					strconv.Itoa(u.Directories))
				return verb.Failed(t.Write(p.Out, p.Style()))
			})
		},
	}
	f.register(cmd, true)
	return cmd
}

func (p *program) fsMove() *cobra.Command {
	var f fsFlags
	replace := false
	cmd := &cobra.Command{
		Use:   "mv POOL FROM TO",
		Short: "Rename a file or directory",
		Long: `Rename a file or directory, within or across directories of a pool. After a crash
it has the old name or the new one. With --replace a file atomically replaces
another file, and a directory an empty one.`,
		Example: `  farflash flash fs mv data.img /src.tar /backup/src.tar
  farflash flash fs mv data.img /src.new /src --replace`,
		Args: verb.Arguments(3, 3, "a pool's device, a path in it, and the new path"),
		RunE: func(_ *cobra.Command, args []string) error {
			if isRoot(args[1]) {
				return verb.Usagef("%s is the root directory and cannot be renamed; name its contents", args[1])
			}
			return f.with(p, args[0], func(files *live.Files) error {
				err := files.Change(live.Request{Op: live.Rename, Path: args[1], To: args[2], Replace: replace})
				switch there, _ := files.Stat(args[2]); {
				case errors.Is(err, fs.ErrExist) && there.Kind == cfs.Directory, errors.Is(err, cfs.ErrIsDir):
					return fmt.Errorf("%w; give the full new path, such as %s", err,
						path.Join(args[2], path.Base(args[1])))
				case errors.Is(err, fs.ErrExist):
					return fmt.Errorf("%w; --replace replaces it", err)
				}
				return err
			})
		},
	}
	f.register(cmd, false)
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an existing file or empty directory atomically")
	return cmd
}

func (p *program) fsTruncate() *cobra.Command {
	var f fsFlags
	allocate, create := false, false
	cmd := &cobra.Command{
		Use:   "truncate POOL PATH SIZE",
		Short: "Change the size of a file",
		Long: `Set the size of a file. Space beyond the new end is freed. A new part reads as
zeros and takes no space until it is written. --allocate reserves the space at
once, so that later writes cannot fail because the pool is full.`,
		Example: `  farflash flash fs truncate data.img /disk 20GiB
  farflash flash fs truncate data.img /scratch 1GiB --create --allocate`,
		Args: verb.Arguments(3, 3, "a pool's device, a path in it, and a size"),
		RunE: func(_ *cobra.Command, args []string) error {
			size, err := units.ParseBytes(args[2])
			switch {
			case err != nil:
				return verb.Usagef("the size: %w", err)
			case size < 0:
				return verb.Usagef("the size %s is below 0", args[2])
			}
			return f.with(p, args[0], func(files *live.Files) error {
				err := files.Change(live.Request{Op: live.Resize, Path: args[1], Size: int64(size), Allocate: allocate,
					Create: create, Perm: 0o644})
				if errors.Is(err, fs.ErrNotExist) && !create {
					err = fmt.Errorf("%w; --create creates it", err)
				}
				return err
			})
		},
	}
	f.register(cmd, false)
	cmd.Flags().BoolVar(&allocate, "allocate", false, "allocate the whole file")
	cmd.Flags().BoolVar(&create, "create", false, "create a missing file")
	return cmd
}
