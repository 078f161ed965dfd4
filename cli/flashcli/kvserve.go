package flashcli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/kv"
	"farflash/flash/kv/resp/server"
	flashserver "farflash/flash/server"
	"farflash/internal/notify"
)

// respFlags are those of the verb that serves stores to clients of Redis.
type respFlags struct {
	kvFlags
	cfg                                                   server.Config
	listen                                                []string
	certificate, key, clients, password, ready, logFormat string
}

func (p *program) kvServe() *cobra.Command {
	f := respFlags{cfg: server.DefaultConfig()}
	cmd := &cobra.Command{
		Use:   "serve ADDRESS STORE...",
		Short: "Serve stores to clients of Redis",
		Long: `Serve stores as databases 0, 1 and so on by Redis' protocol, RESP2 and RESP3, with
its commands on strings, without expiry. Those on several keys are not one step.
If the connection to the store's server is lost in a change that may have been
made, the error begins with UNKNOWN.

Without TLS 1.3 it serves only this machine. TLS needs --listen-cert,
--listen-key, and either --listen-clients or --password-file. --tls-... and
--token-file are for the store's server.`,
		Example: `  farflash flash kv serve 127.0.0.1:9700 store
  farflash flash kv serve unix:sock store sessions --listen unix:redis.sock`,
		Args: verb.Arguments(2, -1, "a server's address, and names of stores"),
		RunE: func(cmd *cobra.Command, args []string) error { return p.serveKV(cmd, &f, args[0], args[1:]) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.listen, "listen", []string{"127.0.0.1:6379"},
		"`address`, HOST:PORT or unix:PATH (repeatable)")
	fl.StringVar(&f.certificate, "listen-cert", "", "`file` with the server's certificate (PEM)")
	fl.StringVar(&f.key, "listen-key", "", "`file` with the server's private key (PEM)")
	fl.StringVar(&f.clients, "listen-clients", "", "`file` with the CA of client certificates (PEM)")
	fl.StringVar(&f.password, "password-file", "", "`file` with the clients' password")
	fl.IntVar(&f.cfg.Most, "connections", f.cfg.Most, "maximum `number` of clients")
	fl.IntVar(&f.cfg.Clients, "store-connections", f.cfg.Clients, "`number` of connections to each store")
	fl.StringVar(&f.logFormat, "log", "text", "`format` of the log on standard error, text or json")
	fl.StringVar(&f.ready, "ready", "", "write the addresses to `file` when ready; removed on exit")
	fl.DurationVar(&f.cfg.Drain, "drain", f.cfg.Drain, "`time` limit for requests in flight at shutdown")
	return cmd
}

// secrets reads what clients are identified by.
func (f *respFlags) secrets() error {
	if f.password != "" {
		text, err := os.ReadFile(f.password)
		if err != nil {
			return fmt.Errorf("--password-file: %w", err)
		}
		if f.cfg.Password = bytes.TrimRight(text, "\r\n"); len(f.cfg.Password) == 0 {
			return fmt.Errorf("--password-file %s: the file is empty", f.password)
		}
	}
	switch {
	case (f.certificate == "") != (f.key == ""):
		return errors.New("--listen-cert and --listen-key must be given together")
	case f.certificate == "" && f.clients != "":
		return errors.New("--listen-clients needs --listen-cert and --listen-key")
	case f.certificate == "":
		return nil
	}
	pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return fmt.Errorf("--listen-cert %s, --listen-key %s: %w", f.certificate, f.key, err)
	}
	f.cfg.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if f.clients == "" {
		return nil
	}
	text, err := os.ReadFile(f.clients)
	if err != nil {
		return fmt.Errorf("--listen-clients: %w", err)
	}
	f.cfg.TLS.ClientCAs, f.cfg.TLS.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !f.cfg.TLS.ClientCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("--listen-clients %s: no certificate in the file", f.clients)
	}
	return nil
}

func (p *program) serveKV(cmd *cobra.Command, f *respFlags, address string, names []string) (err error) {
	ctx := cmd.Context()
	log, err := logger(f.logFormat, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := f.secrets(); err != nil {
		return verb.BadInput(err)
	}
	f.cfg.Version = p.Version
	f.cfg.Failed = func(from net.Addr, err error) { failedKV(log, from, err) }
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // those that are served are closed already
		}
	}()
	at := ""
	for _, text := range f.listen {
		l, err := listenKV(text, &f.cfg)
		if err != nil {
			return verb.BadInput(fmt.Errorf("--listen %s: %w", text, err))
		}
		listeners = append(listeners, l)
		where := l.Addr().String()
		if l.Addr().Network() == "unix" {
			where = text
		}
		at += "redis " + where + "\n"
	}
	for _, name := range names {
		f.cfg.Stores = append(f.cfg.Stores, func(ctx context.Context) (*kv.Store, func() error, error) {
			return f.open(ctx, address, name)
		})
	}
	s, err := server.New(f.cfg)
	if err != nil {
		return verb.Usagef("%w", err)
	}
	p.Keeping()
	if err := s.Open(ctx); err != nil {
		err = errors.Join(err, s.Shutdown())
		if ctx.Err() != nil {
			return verb.Failed(errors.New("interrupted"))
		}
		return verb.BadInput(err)
	}
	served := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { served <- s.Serve(l) }()
	}
	fmt.Fprint(p.Out, at)
	if f.ready != "" {
		whole := p.Unfinished(f.ready) // removed however it ends
		defer whole()
		if err := os.WriteFile(f.ready+".part", []byte(at), 0o600); err != nil {
			return verb.Failed(errors.Join(err, s.Shutdown()))
		}
		if err := os.Rename(f.ready+".part", f.ready); err != nil {
			return verb.Failed(errors.Join(err, s.Shutdown()))
		}
		defer func() { err = errors.Join(err, verb.Failed(os.Remove(f.ready))) }()
	}
	fmt.Fprintln(p.Out, "serving; Ctrl-C stops it")
	noteManager(log, notify.Ready("serving"))
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	noteManager(log, notify.Stopping())
	return verb.Failed(errors.Join(err, s.Shutdown()))
}

// failedKV logs why a connection ended, or a store was lost.
func failedKV(log *slog.Logger, from net.Addr, err error) {
	if from == nil {
		log.Warn("a store was lost, and is opened again when it is needed", "error", err)
		return
	}
	log.Warn("a connection ended", "from", from.String(), "error", err)
}

// listenKV opens a socket for clients, if the settings allow its address.
func listenKV(text string, cfg *server.Config) (net.Listener, error) {
	if path, unix := strings.CutPrefix(text, "unix:"); unix {
		if path == "" {
			return nil, errors.New("a path is missing; write for example unix:redis.sock")
		}
		return flashserver.ListenUnix(&net.UnixAddr{Name: path, Net: "unix"})
	}
	a, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return nil, fmt.Errorf("%w; give HOST:PORT, such as 127.0.0.1:6379", err)
	}
	if err := cfg.Allows(a); err != nil {
		return nil, err
	}
	return net.ListenTCP("tcp", a)
}
