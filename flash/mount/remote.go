package mount

import (
	"context"
	"errors"

	"farflash/flash/client"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
)

// Remote is the tree of a server.
func Remote(c *client.Client) Tree { return remote{c.Files()} }

type remote struct{ *client.Files }

func (t remote) Open(ctx context.Context, h control.Handle, write bool) (File, control.Attributes, error) {
	rights := verbs.RemoteRead
	if write {
		rights |= verbs.RemoteWrite
	}
	f, x, err := t.Files.Open(ctx, h, "", rights)
	if err != nil {
		return nil, x, err
	}
	return far{f}, x, nil
}

type far struct{ *client.File }

// changed marks the error of a file that has another size after a loss of the connection.
func changed(err error) error {
	if errors.Is(err, client.ErrChanged) {
		return errors.Join(errChanged, err)
	}
	return err
}

func (f far) ReadAt(ctx context.Context, b []byte, off int64) error {
	_, err := f.Within(ctx).ReadAt(b, off)
	return changed(err)
}

func (f far) WriteAt(ctx context.Context, b []byte, off int64) error {
	_, err := f.Within(ctx).WriteAt(b, off)
	return changed(err)
}

func (f far) Grow(ctx context.Context, size uint64) (control.Attributes, error) {
	x, err := f.Within(ctx).Grow(size)
	return x, changed(err)
}

func (f far) Flush(ctx context.Context) error { return changed(f.Within(ctx).Flush()) }
