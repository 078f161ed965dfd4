package peer

import (
	"io"
	"os"
)

// ReadFile opens a file and passes it to one of the readers.
func ReadFile[T any](name string, read func(string, io.Reader) (T, error)) (T, error) {
	f, err := os.Open(name)
	if err != nil {
		return *new(T), err
	}
	defer f.Close()
	return read(name, f)
}
