package flashcli

import (
	"errors"
	"fmt"
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
	"farflash/flash/cfs/transfer"
	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/internal/term"
	"farflash/numeric/units"
)

// super is the credential of file system access from the command line: whoever may write to a pool's devices may do
// everything in it.
var super = cfs.Cred{}

// flashFS accesses the file system of a pool that no daemon has open.
func (p *program) flashFS() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fs",
		Short: "Files in a pool that is not being served",
		Long: `List, read, write and remove what is in a pool's file system. The pool's devices must not be in use: while
a daemon serves the pool, its files are reached over the network.`,
		Args: verb.Unknown,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.fsList(), p.fsPut(), p.fsGet(), p.fsRemove(), p.fsMkdir(), p.fsStat(), p.fsFree(), p.fsMove(),
		p.fsTruncate())
	return cmd
}

// fsFlags are the flags of all these verbs.
type fsFlags struct {
	pool   poolFlags
	also   []string
	asJSON bool
}

func (f *fsFlags) register(cmd *cobra.Command, withJSON bool) {
	f.pool.register(cmd, briefMemory)
	cmd.Flags().StringArrayVar(&f.also, "also", nil, "another `device` of the pool; can be given several times")
	if withJSON {
		cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	}
}

// with opens a pool and its file system, calls do, and closes both.
func (f *fsFlags) with(p *program, device string, do func(*cfs.FS) error) (err error) {
	o, err := f.pool.options()
	if err != nil {
		return err
	}
	opened, _, err := pool.Open(o, append([]string{device}, f.also...)...)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return verb.BadInput(
			fmt.Errorf("%w; a daemon may be serving it: its files are reached through it until it is stopped", err))
	case err != nil:
		return verb.BadInput(err)
	}
	defer func() {
		if closing := opened.Close(); closing != nil {
			err = errors.Join(err, verb.Failed(fmt.Errorf("%s: %w", device, closing)))
		}
	}()
	p.noteReadOnly(device, opened)
	files, err := cfs.Open(opened, cfs.Config{Now: time.Now})
	switch {
	case errors.Is(err, cfs.ErrNone):
		return verb.BadInput(fmt.Errorf("%s: %w; make a pool with one: farflash flash format", device, err))
	case err != nil:
		return verb.Failed(fmt.Errorf("%s: %w", device, err))
	}
	if x := files.Found(); x.Nameless > 0 {
		p.Note("%s: files without a name were removed, which were being written, or had been removed, when the pool "+
			"was last left: %d", device, x.Nameless)
	}
	err = do(files)
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

// formatFiles creates a file system in a new pool and, if disk is not empty, one file of that name and of size bytes.
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

// fileEntry is the JSON form of a file.
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

// modeText formats permissions as ls does.
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
		Long:  `List a directory or a file of a pool's file system, by name.`,
		Example: `  farflash flash fs ls data.img
  farflash flash fs ls data.img /backup --json`,
		Args: verb.Arguments(1, 2, "a pool's device, and perhaps a path in it"),
		RunE: func(_ *cobra.Command, args []string) error {
			at := "/"
			if len(args) > 1 {
				at = args[1]
			}
			return f.with(p, args[0], func(files *cfs.FS) error {
				all, err := files.List(super, at)
				if err != nil {
					return err
				}
				if f.asJSON {
					entries := make([]fileEntry, 0, len(all))
					for _, x := range all {
						entries = append(entries, entryOf(x))
					}
					return p.JSON(map[string]any{"path": "/" + strings.Trim(at, "/"), "entries": entries})
				}
				t := term.NewTable(term.Left("mode"), term.Right("owner"), term.Right("group"), term.Right("bytes"),
					term.Left("changed"), term.Left("name"))
				for _, x := range all {
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

// ownFlags are the owner and permissions of a new file or directory.
type ownFlags struct {
	mode     string
	uid, gid uint32
}

func (o *ownFlags) register(cmd *cobra.Command, mode string) {
	cmd.Flags().StringVar(&o.mode, "mode", mode, "permissions in `octal`, as for chmod")
	cmd.Flags().Uint32Var(&o.uid, "owner", 0, "user `number` of the owner")
	cmd.Flags().Uint32Var(&o.gid, "group", 0, "group `number` of the owner")
}

func (o *ownFlags) perm() (uint16, error) {
	n, err := strconv.ParseUint(o.mode, 8, 16)
	if err != nil || n > 0o777 {
		return 0, verb.Usagef("--mode %q: give three octal digits, as 640", o.mode)
	}
	return uint16(n), nil
}

// take sets the owner of a new file or directory.
func (o *ownFlags) take(files *cfs.FS, at string) error {
	if o.uid == 0 && o.gid == 0 {
		return nil
	}
	return files.Chown(super, at, o.uid, o.gid)
}

func (p *program) fsMkdir() *cobra.Command {
	var f fsFlags
	var own ownFlags
	cmd := &cobra.Command{
		Use:   "mkdir POOL PATH...",
		Short: "Make directories",
		Long:  `Make directories in a pool's file system. Each is durable when the command ends.`,
		Example: `  farflash flash fs mkdir data.img /backup /backup/monday
  farflash flash fs mkdir data.img /private --mode 700 --owner 1000`,
		Args: verb.Arguments(2, -1, "a pool's device, and paths in it"),
		RunE: func(_ *cobra.Command, args []string) error {
			perm, err := own.perm()
			if err != nil {
				return err
			}
			return f.with(p, args[0], func(files *cfs.FS) error {
				for _, at := range args[1:] {
					if err := files.Mkdir(super, at, perm); err != nil {
						return err
					}
					if err := own.take(files, at); err != nil {
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
		Long: `Copy a file, or with - standard input, into a pool's file system. The file gets
its name when all of it is durable. After an interruption or a crash there is
the whole file or none. Zeros take no room.`,
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
					return verb.BadInput(fmt.Errorf("%s is a directory; give one file", args[1]))
				}
				in = file
			}
			p.Keeping()
			return f.with(p, args[0], func(files *cfs.FS) error {
				if _, err := files.Stat(super, args[2]); err == nil && !replace {
					return fmt.Errorf("%s: %w; --replace puts the new one in its place", args[2], fs.ErrExist)
				} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				return transfer.Put(cmd.Context(), files, super, in,
					transfer.Target{Path: args[2], Perm: perm, UID: own.uid, GID: own.gid, Replace: replace})
			})
		},
	}
	f.register(cmd, false)
	own.register(cmd, "644")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an existing file, in one step")
	return cmd
}

func (p *program) fsGet() *cobra.Command {
	var f fsFlags
	replace := false
	cmd := &cobra.Command{
		Use:   "get POOL PATH [FILE]",
		Short: "Copy a file out of a pool",
		Long: `Copy a file out of a pool's file system, into the current folder, to a file, or
with - to standard output. A file appears only when all of it has been read.`,
		Example: `  farflash flash fs get data.img /src.tar
  farflash flash fs get data.img /src.tar - | tar t`,
		Args: verb.Arguments(2, 3, "a pool's device, a path in it, and perhaps a file or - for standard output"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := path.Base(args[1])
			if len(args) > 2 {
				to = args[2]
			}
			p.Keeping()
			return f.with(p, args[0], func(files *cfs.FS) error {
				if to == "-" {
					return transfer.Get(cmd.Context(), files, super, args[1], p.Data)
				}
				err := transfer.Save(cmd.Context(), files, super, args[1], to, replace)
				if errors.Is(err, fs.ErrExist) {
					return fmt.Errorf("%w; --replace puts the new one in its place", err)
				}
				return err
			})
		},
	}
	f.register(cmd, false)
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an existing file")
	return cmd
}

// isRoot reports whether a path is the root directory's.
func isRoot(at string) bool { return strings.Trim(at, "/") == "" }

func (p *program) fsRemove() *cobra.Command {
	var f fsFlags
	recursive := false
	cmd := &cobra.Command{
		Use:   "rm POOL PATH...",
		Short: "Remove files and empty directories",
		Long: `Remove files and empty directories from a pool's file system. Their room is free
at once. With --recursive directories go with everything in them.`,
		Example: `  farflash flash fs rm data.img /src.tar
  farflash flash fs rm data.img /backup --recursive`,
		Args: verb.Arguments(2, -1, "a pool's device, and paths in it"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.with(p, args[0], func(files *cfs.FS) error {
				for _, at := range args[1:] {
					if isRoot(at) {
						return verb.Usagef("%s is the root directory, which a pool always has; name what is in it", at)
					}
					err := files.Remove(super, at)
					if recursive && errors.Is(err, cfs.ErrNotEmpty) {
						err = transfer.RemoveAll(files, super, at)
					}
					if errors.Is(err, cfs.ErrNotEmpty) {
						err = fmt.Errorf("%w; --recursive removes what is in it as well", err)
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
		Short: "Say what is known of a file",
		Long: `Show files and directories: size, room taken, owner, and where they are in the
pool's space. A file's bytes are at consecutive addresses from its base on. It
can grow up to its block without being moved.`,
		Example: `  farflash flash fs stat data.img /disk
  farflash flash fs stat data.img /disk /backup --json`,
		Args: verb.Arguments(2, -1, "a pool's device, and paths in it"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.with(p, args[0], func(files *cfs.FS) error {
				type stated struct {
					fileEntry
					Used  int64  `json:"used"`
					Base  string `json:"base"`
					Block uint64 `json:"block"`
				}
				var all []stated
				t := term.NewTable(term.Left("path"), term.Left("kind"), term.Left("mode"), term.Right("owner"),
					term.Right("group"), term.Right("bytes"), term.Right("used"), term.Right("block"),
					term.Right("base"), term.Left("changed"))
				for _, at := range args[1:] {
					x, err := files.Stat(super, at)
					if err != nil {
						return err
					}
					base := fmt.Sprintf("0x%x", x.Base)
					all = append(all, stated{entryOf(x), x.Used, base, x.Block})
					t.Row(x.Path, x.Kind.String(), modeText(x), fmt.Sprint(x.UID), fmt.Sprint(x.GID),
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
		Short: "Say how full a pool is",
		Long: "Say how much of a pool is in use, and by how many files. Unwritten parts take no\nroom, so files can " +
			"be larger than the pool.",
		Example: `  farflash flash fs df data.img
  farflash flash fs df a.img --also b.img --json`,
		Args: verb.Arguments(1, 1, "a pool's device"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.with(p, args[0], func(files *cfs.FS) error {
				u := files.Usage()
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
		Short: "Give a file or directory another name",
		Long: `Give a file or directory another name, in any directory of the same pool. After
a crash it has the old name or the new one. With --replace a file takes the
place of another file, and a directory that of an empty one, in the same step.`,
		Example: `  farflash flash fs mv data.img /src.tar /backup/src.tar
  farflash flash fs mv data.img /src.new /src --replace`,
		Args: verb.Arguments(3, 3, "a pool's device, a path in it, and the path that it is to have"),
		RunE: func(_ *cobra.Command, args []string) error {
			if isRoot(args[1]) {
				return verb.Usagef("%s is the root directory, which stays where it is; name what is in it", args[1])
			}
			return f.with(p, args[0], func(files *cfs.FS) error {
				err := files.Rename(super, args[1], args[2], !replace)
				switch there, _ := files.Stat(super, args[2]); {
				case errors.Is(err, fs.ErrExist) && there.Kind == cfs.Directory, errors.Is(err, cfs.ErrIsDir):
					return fmt.Errorf("%w; give the whole name that it is to have, as %s", err,
						path.Join(args[2], path.Base(args[1])))
				case errors.Is(err, fs.ErrExist):
					return fmt.Errorf("%w; --replace puts it in its place", err)
				}
				return err
			})
		},
	}
	f.register(cmd, false)
	cmd.Flags().BoolVar(&replace, "replace", false, "replace what has the name")
	return cmd
}

func (p *program) fsTruncate() *cobra.Command {
	var f fsFlags
	allocate, create := false, false
	cmd := &cobra.Command{
		Use:   "truncate POOL PATH SIZE",
		Short: "Make a file shorter or longer",
		Long: `Set the size of a file. What lies behind a new end is freed. A new part reads as
zeros, and takes no room until it is written. With --allocate it takes its room
at once, so that later writes never find the pool full.`,
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
			return f.with(p, args[0], func(files *cfs.FS) error {
				file, err := files.Open(super, args[1], cfs.Read|cfs.Write)
				made := errors.Is(err, fs.ErrNotExist) && create
				if made { // it gets its name once it has its size
					file, err = files.Temp(super, 0o644)
				}
				switch {
				case errors.Is(err, fs.ErrNotExist):
					return fmt.Errorf("%w; --create makes it", err)
				case err != nil:
					return err
				}
				if allocate && int64(size) >= file.Size() {
					err = file.Allocate(int64(size))
				} else {
					err = file.Truncate(int64(size))
				}
				if made && err == nil {
					err = file.Name(super, args[1], true)
				}
				return errors.Join(err, file.Close())
			})
		},
	}
	f.register(cmd, false)
	cmd.Flags().BoolVar(&allocate, "allocate", false, "allocate all of it")
	cmd.Flags().BoolVar(&create, "create", false, "create a missing file")
	return cmd
}
