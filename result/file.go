package result

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Temporary is the name of what is not written to its end yet, with a star for what tells several apart. It says
// which process writes it, so that one that is left in the middle can remove its own and no other's.
func Temporary(name string) string {
	const most = 64 // a name with all around it must fit into the 255 bytes that systems give
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "")
	}
	return fmt.Sprintf(".farflash-%s-%d-*", name, os.Getpid())
}

// Literal is a pattern for filepath.Glob that stands for a name alone.
func Literal(name string) string {
	if runtime.GOOS == "windows" {
		return name // where names hold no signs of patterns but [, which cannot be quoted
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// Unfinished is what filepath.Glob finds all by that this process writes below a folder at the moment, with WriteFile
// or as a run directory.
func Unfinished(folder string) string {
	return filepath.Join(Literal(folder), fmt.Sprintf(".farflash-*-%d-*", os.Getpid()))
}

// WriteFile writes or replaces a file: readers see what was there or what is there now, whole, and so they do after
// the machine went down. Its folder is made if it is not there.
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

// syncAll has a folder and the files in it on the disk when it returns.
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

// syncFolder has the names in a folder on the disk, where the system can be asked for that.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // which has no such call for folders
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
