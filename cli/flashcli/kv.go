package flashcli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs/live"
	"farflash/flash/client"
	"farflash/flash/kv"
	"farflash/flash/verbs"
	"farflash/internal/term"
	"farflash/numeric/units"
)

// flashKV returns the verb for key-value stores.
func (p *program) flashKV() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kv",
		Short: "A key-value store in a file",
		Long: `Make key-value stores in files of a pool, and use them over the network, by
one-sided operations.`,
		Args: verb.Unknown,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.kvCreate(), p.kvGet(), p.kvPut(), p.kvDelete(), p.kvScan(), p.kvStat(), p.kvServe(),
		p.kvBench(), p.kvYCSB())
	return cmd
}

func (p *program) kvCreate() *cobra.Command {
	var f fsFlags
	keys, key, class := uint64(0), 48, kv.Data.String()
	value := sizeFlag{4000}
	cmd := &cobra.Command{
		Use:   "create POOL PATH",
		Short: "Make a store",
		Long: `Make an empty store in a new file of a pool, whether or not a daemon serves it. Its
space is taken as values are written. --class says what an answered change means:

async    a crash of the server may lose it, and the value before it
data     after a crash a key has its last value or an earlier one, whole
durable  it is on flash, and so is every value that was read`,
		Example: `  farflash flash kv create data.img /store --keys 1000000 --value-size 4000
  farflash flash kv create data.img /orders --keys 20000 --class durable`,
		Args: verb.Arguments(2, 2, "a pool's device, and a path in the pool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if keys == 0 {
				return verb.Usagef("--keys N is missing: how many keys the store is for")
			}
			c, err := kv.ParseClass(class)
			if err != nil {
				return verb.Usagef("--class: %w", err)
			}
			var seed [8]byte
			if _, err := rand.Read(seed[:]); err != nil {
				return verb.Failed(err)
			}
			g, err := kv.NewGeometry(keys, key, int(min(value.bytes, units.GiB)), c,
				binary.LittleEndian.Uint64(seed[:]))
			if err != nil {
				return verb.Usagef("%w", err)
			}
			first, err := g.First()
			if err != nil {
				return verb.Failed(err)
			}
			return f.with(p, args[0], func(files *live.Files) error {
				r := live.Request{Op: live.Put, Path: args[1], Perm: 0o600}
				if _, err := files.Stat(args[1]); err == nil {
					return fmt.Errorf("%s exists; a store needs a new file", args[1])
				}
				if _, err := files.Do(cmd.Context(), r, bytes.NewReader(first), nil); err != nil {
					return err
				}
				if err := files.Change(live.Request{Op: live.Resize, Path: args[1], Size: g.Size()}); err != nil {
					return errors.Join(err, files.Change(live.Request{Op: live.Remove, Path: args[1]}))
				}
				fmt.Fprintf(p.Out, "%s: a store for %d keys, %s, %s\n", args[1], keys, term.Size(float64(g.Size())), c)
				return nil
			})
		},
	}
	f.register(cmd, false)
	fl := cmd.Flags()
	fl.Uint64Var(&keys, "keys", 0, "`number` of keys")
	fl.IntVar(&key, "key-size", key, "longest key in `bytes`, up to 240")
	fl.Var(&value, "value-size", "largest value, a `size`")
	fl.StringVar(&class, "class", class, "async, data or durable")
	return cmd
}

// kvFlags are those of clients of a store.
type kvFlags struct{ authority, certificate, key, token string }

func (f *kvFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.authority, "tls-authority", "", "`file` with the authority of the server's certificate; TLS")
	fl.StringVar(&f.certificate, "tls-cert", "", "`file` with this client's certificate")
	fl.StringVar(&f.key, "tls-key", "", "`file` with its key")
	fl.StringVar(&f.token, "token-file", "", "`file` with the server's token")
}

// config is that of a client with these flags.
func (f *kvFlags) config() (client.Config, error) {
	cfg := client.DefaultConfig()
	cfg.Named = true
	if f.authority == "" {
		if f.certificate != "" || f.key != "" || f.token != "" {
			return cfg, verb.Usagef("--tls-cert, --tls-key and --token-file need --tls-authority")
		}
		return cfg, nil
	}
	pem, err := os.ReadFile(f.authority)
	if err != nil {
		return cfg, verb.BadInput(err)
	}
	cfg.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	if !cfg.TLS.RootCAs.AppendCertsFromPEM(pem) {
		return cfg, verb.BadInput(fmt.Errorf("%s: no certificate in PEM", f.authority))
	}
	if f.certificate != "" || f.key != "" {
		c, err := tls.LoadX509KeyPair(f.certificate, f.key)
		if err != nil {
			return cfg, verb.BadInput(fmt.Errorf("--tls-cert, --tls-key: %w", err))
		}
		cfg.TLS.Certificates = []tls.Certificate{c}
	}
	if f.token != "" {
		token, err := os.ReadFile(f.token)
		if err != nil {
			return cfg, verb.BadInput(err)
		}
		cfg.Token = bytes.TrimRight(token, "\r\n")
	}
	return cfg, nil
}

// open opens the store in a server's file. The function closes it.
func (f *kvFlags) open(ctx context.Context, address, name string) (s *kv.Store, end func() error, err error) {
	cfg, err := f.config()
	if err != nil {
		return nil, nil, err
	}
	dialing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := client.Dial(dialing, address, cfg)
	if err != nil {
		return nil, nil, verb.BadInput(fmt.Errorf("%s: %w", address, err))
	}
	file, err := c.Open(name, verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err != nil {
		return nil, nil, errors.Join(verb.BadInput(fmt.Errorf("%s: %w", address, err)), c.Close())
	}
	r, err := kv.NewRemote(c, file)
	if err != nil {
		return nil, nil, errors.Join(verb.Failed(err), c.Close())
	}
	s, err = kv.Open(ctx, r, r, r.Options())
	if err != nil {
		return nil, nil, errors.Join(verb.BadInput(fmt.Errorf("%s: %w", name, err)), c.Close())
	}
	return s, func() error { return errors.Join(s.Close(), c.Close()) }, nil
}

// with opens the store in a server's file, and closes it afterwards.
func (f *kvFlags) with(ctx context.Context, address, name string, do func(*kv.Store) error) error {
	s, end, err := f.open(ctx, address, name)
	if err != nil {
		return err
	}
	failed := errors.Join(do(s), end())
	var known *verb.Error
	switch {
	case failed == nil, errors.As(failed, &known):
		return failed
	case errors.Is(failed, kv.ErrTooLong):
		return verb.BadInput(failed)
	case ctx.Err() != nil:
		return verb.Failed(errors.New("interrupted"))
	}
	return verb.Failed(failed)
}

// storeNames are the arguments before those of each verb.
const storeNames = "a server's address, a store's name"

func (p *program) kvGet() *cobra.Command {
	var f kvFlags
	cmd := &cobra.Command{
		Use:   "get ADDRESS STORE KEY",
		Short: "Print the value of a key",
		Long:  `Print the value of a key as it is. A key without one is an error.`,
		Example: `  farflash flash kv get 127.0.0.1:9700 store colour
  farflash flash kv get unix:sock store logo > logo.png`,
		Args: verb.Arguments(3, 3, storeNames+", and a key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), args[0], args[1], func(s *kv.Store) error {
				value, ok, err := s.Get(cmd.Context(), []byte(args[2]), nil)
				switch {
				case err != nil:
					return err
				case !ok:
					return verb.BadInput(fmt.Errorf("%s has no key %q", args[1], args[2]))
				}
				_, err = p.Data.Write(value)
				return err
			})
		},
	}
	f.register(cmd)
	return cmd
}

func (p *program) kvPut() *cobra.Command {
	var f kvFlags
	cmd := &cobra.Command{
		Use:   "put ADDRESS STORE KEY VALUE",
		Short: "Set the value of a key",
		Long:  `Set the value of a key, to the argument or, if that is -, to standard input.`,
		Example: `  farflash flash kv put 127.0.0.1:9700 store colour blue
  farflash flash kv put 127.0.0.1:9700 store logo - < logo.png`,
		Args: verb.Arguments(4, 4, storeNames+", a key, and a value or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			value := []byte(args[3])
			if args[3] == "-" {
				var err error
				if value, err = io.ReadAll(io.LimitReader(p.In, 2<<20)); err != nil {
					return verb.BadInput(err)
				}
			}
			return f.with(cmd.Context(), args[0], args[1], func(s *kv.Store) error {
				return s.Put(cmd.Context(), []byte(args[2]), value)
			})
		},
	}
	f.register(cmd)
	return cmd
}

func (p *program) kvDelete() *cobra.Command {
	var f kvFlags
	cmd := &cobra.Command{
		Use:   "del ADDRESS STORE KEY...",
		Short: "Remove keys",
		Long:  `Remove keys, and print how many there were.`,
		Example: `  farflash flash kv del 127.0.0.1:9700 store colour
  farflash flash kv del unix:sock store colour logo`,
		Args: verb.Arguments(3, -1, storeNames+", and keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), args[0], args[1], func(s *kv.Store) error {
				n := 0
				for _, key := range args[2:] {
					ok, err := s.Delete(cmd.Context(), []byte(key))
					if err != nil {
						return err
					}
					if ok {
						n++
					}
				}
				fmt.Fprintln(p.Out, n)
				return nil
			})
		},
	}
	f.register(cmd)
	return cmd
}

func (p *program) kvScan() *cobra.Command {
	var f kvFlags
	prefix := ""
	cmd := &cobra.Command{
		Use:   "scan ADDRESS STORE",
		Short: "List keys",
		Long: `List the keys of a store with the sizes of their values, in no order. Keys that
come or go meanwhile may be missing.`,
		Example: `  farflash flash kv scan 127.0.0.1:9700 store
  farflash flash kv scan unix:sock store --prefix user:`,
		Args: verb.Arguments(2, 2, storeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), args[0], args[1], func(s *kv.Store) error {
				t := term.NewTable(term.Right("bytes"), term.Left("key"))
				err := s.Scan(cmd.Context(), []byte(prefix), func(key, value []byte, lost bool) error {
					size := strconv.Itoa(len(value))
					if lost {
						size = "lost"
					}
					t.Row(size, printable(key))
					return nil
				})
				if err != nil || t.Rows() == 0 {
					return err
				}
				return t.Write(p.Out, p.Style())
			})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with this `text`")
	f.register(cmd)
	return cmd
}

// printable is a key as it can be shown: as it is, or quoted.
func printable(key []byte) string {
	if quoted := strconv.Quote(string(key)); quoted[1:len(quoted)-1] != string(key) {
		return quoted
	}
	return string(key)
}

func (p *program) kvStat() *cobra.Command {
	var f kvFlags
	cmd := &cobra.Command{
		Use:   "stat ADDRESS STORE",
		Short: "Show how full a store is",
		Long:  `Show how many keys a store has and is for, and how many clients it has.`,
		Example: `  farflash flash kv stat 127.0.0.1:9700 store
  farflash flash kv stat unix:sock store`,
		Args: verb.Arguments(2, 2, storeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), args[0], args[1], func(s *kv.Store) error {
				u, err := s.Use(cmd.Context())
				if err != nil {
					return err
				}
				g := s.Geometry()
				t := term.NewTable(term.Left("store"), term.Right("in use"), term.Right("of"))
				t.Row("places for keys", fmt.Sprint(u.Keys), fmt.Sprint(g.Places()))
				t.Row(fmt.Sprintf("slots of %s", term.Size(float64(g.Slot))), fmt.Sprint(u.Slots), fmt.Sprint(g.Slots))
				t.Row("clients, with this one", fmt.Sprint(u.Members), fmt.Sprint(kv.Members))
				return t.Write(p.Out, p.Style())
			})
		},
	}
	f.register(cmd)
	return cmd
}
