package result

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Temporary returns a pattern for the name of an unfinished file of this process, with a star for the random part.
func Temporary(name string) string {
	const most = 64 // the name with all its affixes must fit into the 255 bytes that file systems allow
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "")
	}
	return fmt.Sprintf(".farflash-%s-%d-*", name, os.Getpid())
}

// Literal returns a pattern for filepath.Glob that matches exactly name.
func Literal(name string) string {
	if runtime.GOOS == "windows" {
		return name // the only pattern character a name can hold is [, which cannot be escaped
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// Unfinished returns the Glob pattern of what this process is writing directly below folder.
func Unfinished(folder string) string {
	return filepath.Join(Literal(folder), fmt.Sprintf(".farflash-*-%d-*", os.Getpid()))
}

// WriteFile creates or replaces a file, and its folder, atomically, even through a crash.
func WriteFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, Temporary(filepath.Base(path)))
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(dir)
}

// syncAll syncs a folder and the files in it to the disk.
func syncAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return syncFolder(dir)
}

// syncFolder syncs the entries of a folder to the disk, on systems that support it.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // no such call for folders
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
