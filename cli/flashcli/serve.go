package flashcli

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/cfs/live"
	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/pool"
	"farflash/flash/qos"
	"farflash/flash/recorder"
	"farflash/flash/server"
	"farflash/flash/uring"
	"farflash/internal/notify"
	"farflash/internal/spelling"
	"farflash/internal/term"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
)

// serveFlags holds the flags of the daemon.
type serveFlags struct {
	pool    poolFlags
	size    sizeFlag
	disk    string
	cert    string
	key     string
	clients string
	token   string
	keys    string
	config  string
	control string
	exports config
	renewal sync.Mutex // one reload at a time
	ready   string
	limits  []string
	rates   limits // of limits or of the config
	drain   time.Duration
	threads int
	spin    time.Duration
	log     string
	trouble troubles
	files   bool
	record  string
	most    sizeFlag // of the recording
	cfg     server.Config
}

func (p *program) flashServe() *cobra.Command {
	f := serveFlags{cfg: server.DefaultConfig(), most: sizeFlag{units.GiB}}
	f.cfg.Address, f.cfg.Metrics = "127.0.0.1:9700", ""
	cmd := &cobra.Command{
		Use:   "serve [FILE...]",
		Short: "Serve a pool's files over the network",
		Long: `Serve the files of a pool with one-sided reads, writes and atomics over iWARP
(RDMA over TCP), with --nbd as network block devices, and with --nvme over
NVMe/TCP. --size first formats an empty file or device as a pool with one file,
called disk. Unknown data are never overwritten.

With --nvme, each file is a namespace of one subsystem. Given twice, hosts have
two paths. NVMe/TCP is not encrypted: without --nvme-keys, by which hosts prove
who they are, the address must be on this machine, and with it the address
belongs into a tunnel.

Without TLS 1.3 the daemon serves only this machine. TLS needs --tls-cert,
--tls-key, and either --tls-clients, the CA of client certificates, or --token-
file, a secret that iWARP clients send within TLS. NBD cannot carry the token:
NBD clients need certificates.

--limit NAME=RATE limits an export, in bytes/s, operations/s or both. The word
latency gives it priority: --limit 'disk=100MB/s,5000iops,latency'.

--config reads the flags from a file, with underscores in their names, besides
devices, a list, and exports, of which it creates those that are missing and
extends those that are smaller:

  devices: [data.img]
  size: 1TB
  exports: {db: 100GiB, logs: 50GiB}
  limit: {logs: 100MB/s}
  nvme: [127.0.0.1:4420]

SIGHUP makes it read exports, limits, certificates, the token and the keys again.
It says READY=1 to systemd (Type=notify). On SIGTERM or Ctrl-C the daemon accepts
no new work, completes requests in flight, flushes, and writes a checkpoint for
a quick restart. A second signal ends it at once; durable data stays durable.`,
		Example: `  farflash flash serve data.img --size 10GiB
  farflash flash serve data.img --nbd 127.0.0.1:10809 --metrics 127.0.0.1:9701
  farflash flash serve data.img --listen 0.0.0.0:9700 --tls-cert server.pem --tls-key server.key --token-file secret`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.config != "" {
				return nil
			}
			return verb.Arguments(1, -1, "one or more files or block devices")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.config != "" {
				if f.exports, err = readConfig(cmd, f.config, true); err != nil {
					return verb.BadInput(err)
				}
				if len(args) == 0 {
					args = f.exports.devices
				}
				if len(args) == 0 {
					return verb.Usagef("%s: no devices; write for example devices: [data.img]", f.config)
				}
				if len(f.exports.exports) > 0 && !cmd.Flags().Changed("disk") {
					f.disk = f.exports.exports[0].name
				}
			}
			return p.serve(cmd, &f, args)
		},
	}
	f.pool.register(cmd, usualMemory)
	cmd.Flags().Var(&f.pool.mapped, "map-memory",
		"`size` of the map's part of --memory; above it, parts of it are read again from the devices")
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "",
		"YAML `file` with devices, exports and flags, which the command line overrides")
	fl.Var(&f.size, "size", "`size` of the disk in a new pool")
	fl.StringVar(&f.disk, "disk", "disk", "`name` of the file in a new pool, and of NBD's default export")
	fl.StringVar(&f.cfg.Address, "listen", f.cfg.Address, "iWARP `address`, HOST:PORT or unix:PATH; empty: none")
	fl.StringVar(&f.cfg.NBD, "nbd", "", "NBD `address`, HOST:PORT or unix:PATH")
	fl.StringArrayVar(&f.cfg.NVMe, "nvme", nil, "NVMe/TCP `address`, HOST:PORT, on this machine (repeatable)")
	fl.StringVar(&f.cfg.Subsystem, "nvme-subsystem", "",
		"`name` of the NVMe subsystem; by default from the pool's UUID")
	fl.StringArrayVar(&f.cfg.Hosts, "nvme-host", nil,
		"`name` of an NVMe host that may connect (repeatable); by default all may")
	fl.StringVar(&f.keys, "nvme-keys", "", "`file` with the DH-HMAC-CHAP keys of the NVMe hosts that may connect")
	fl.IntVar(&f.cfg.Queues, "nvme-queues", 0,
		"maximum I/O queues of an NVMe host; 0: as many as the memory allows, up to 16")
	fl.StringVar(&f.cfg.Metrics, "metrics", "",
		"`address` of /metrics for Prometheus, /healthz and /readyz; with TLS if not on this machine")
	fl.StringVar(&f.cfg.Traces, "traces", "",
		"`URL` of a collector of traces, by OTLP over HTTP")
	fl.IntVar(&f.cfg.TraceEvery, "trace-every", f.cfg.TraceEvery, "trace one request in this many")
	fl.StringVar(&f.record, "record", "",
		"`file` that gets each operation's time, place and latency, as a trace for farflash run")
	fl.Var(&f.most, "record-size", "maximum `size` of that file and FILE.1, the one before it")
	fl.BoolVar(&f.cfg.ReadOnly, "read-only", false, "serve reads only")
	fl.BoolVar(&f.files, "files", false, "let iWARP clients create, rename and remove files")
	fl.StringVar(&f.cert, "tls-cert", "", "`file` with the server's certificate (PEM)")
	fl.StringVar(&f.key, "tls-key", "", "`file` with the server's private key (PEM)")
	fl.StringVar(&f.clients, "tls-clients", "", "`file` with the CA of client certificates (PEM)")
	fl.StringVar(&f.token, "token-file", "", "`file` with the clients' token, 16 to 256 bytes")
	fl.StringArrayVar(&f.limits, "limit", nil, "limit an export: `NAME=RATE` (repeatable)")
	fl.Var(kindFlag{&f.cfg.RateControl}, "rate-control",
		"`kind` of rate control of reads by each client's network: none, aimd or reserve")
	fl.IntVar(&f.cfg.Connections, "connections", f.cfg.Connections, "maximum iWARP connections")
	fl.IntVar(&f.cfg.NBDConnections, "nbd-connections", 0,
		"maximum NBD connections; 0: as many as the memory allows, up to 16")
	fl.IntVar(&f.cfg.Open, "exports", f.cfg.Open, "maximum open exports per connection; with --files, by default 1024")
	fl.IntVar(&f.cfg.PerExport, "per-export", f.cfg.PerExport, "maximum times that an export is open")
	fl.IntVar(&f.cfg.Reads, "reads", f.cfg.Reads, "maximum outstanding reads and atomics per connection")
	fl.DurationVar(&f.spin, "spin", uring.DefaultSpin,
		"`time` that such a thread polls before it sleeps, while requests arrive within it; 0s: sleep at once")
	fl.IntVar(&f.threads, "threads", 0,
		"io_uring `threads` for devices and for connections without TLS; 0: half the number of processors")
	fl.DurationVar(&f.cfg.Handshake, "handshake", f.cfg.Handshake, "`time` limit for a client's handshake")
	fl.DurationVar(&f.cfg.Progress, "progress", f.cfg.Progress, "`time` limit for one frame of a client")
	fl.DurationVar(&f.cfg.Idle, "idle", f.cfg.Idle,
		"`time` after which an idle iWARP connection is closed; 0: never. Idle NBD connections stay open")
	fl.StringVar(&f.log, "log", "text", "`format` of the log on standard error, text or json")
	fl.StringVar(&f.control, "control", "",
		"`path` of the socket for farflash flash fs and ctl, by its user and the superuser; by default FILE.socket")
	fl.StringVar(&f.ready, "ready", "", "write the addresses to `file` when ready; removed on exit")
	fl.DurationVar(&f.drain, "drain", 10*time.Second, "`time` limit for requests in flight at shutdown")
	return cmd
}

// kindFlag is a flag of a kind of rate control.
type kindFlag struct{ kind *ratecontrol.Kind }

// String implements pflag.Value.
func (k kindFlag) String() string {
	if k.kind == nil {
		return ratecontrol.None.String()
	}
	return k.kind.String()
}

// Set implements pflag.Value.
func (k kindFlag) Set(text string) error {
	var kind ratecontrol.Kind
	err := kind.UnmarshalText([]byte(text))
	if err == nil {
		err = qos.CheckSteering(kind)
	}
	if err == nil {
		*k.kind = kind
	}
	return err
}

// Type implements pflag.Value.
func (kindFlag) Type() string { return "kind" }

// secrets reads the keys, the certificates and the token.
func (f *serveFlags) secrets() (x server.Secrets, err error) {
	if f.keys != "" {
		if x.Keys, err = readKeys(f.keys); err != nil {
			return x, fmt.Errorf("--nvme-keys: %w", err)
		}
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return x, errors.New("--tls-cert and --tls-key must be given together")
	case f.cert == "" && (f.clients != "" || f.token != ""):
		return x, errors.New("--tls-clients and --token-file need --tls-cert and --tls-key")
	case f.cert == "":
		return x, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return x, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.cert, f.key, err)
	}
	x.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if f.clients != "" {
		text, err := os.ReadFile(f.clients)
		if err != nil {
			return x, fmt.Errorf("--tls-clients: %w", err)
		}
		x.TLS.ClientCAs = x509.NewCertPool()
		if !x.TLS.ClientCAs.AppendCertsFromPEM(text) {
			return x, fmt.Errorf("--tls-clients %s: no certificate in the file", f.clients)
		}
	}
	if f.token != "" {
		text, err := os.ReadFile(f.token)
		if err != nil {
			return x, fmt.Errorf("--token-file: %w", err)
		}
		x.Token = bytes.TrimRight(text, "\r\n")
	}
	return x, nil
}

// reload reads the keys, the certificates and the token again. If one cannot be read, the old ones stay in force. It
// also makes the exports of the config that are missing or smaller, and sets the limits that have changed in it.
func (f *serveFlags) reload(cmd *cobra.Command, s *server.Server, tree *cfs.FS) {
	f.renewal.Lock()
	defer f.renewal.Unlock()
	log := f.cfg.Log
	noteManager(log, notify.Reloading())
	if f.config != "" {
		c, err := readConfig(cmd, f.config, false)
		if err == nil {
			err = c.make(tree, log)
		}
		s.Refresh()
		if err == nil && len(f.limits) == 0 {
			err = f.relimit(s, tree, c.limits)
		}
		if err != nil {
			log.Error("SIGHUP: exports and limits stay as they are", "error", err)
		} else {
			log.Info("SIGHUP: exports and limits are read again", "config", f.config)
		}
	}
	switch err := f.renew(s); {
	case f.cert == "" && f.keys == "":
		if f.config == "" {
			log.Warn("SIGHUP: there are no certificates and keys to read again")
		}
	case err != nil:
		log.Error("SIGHUP: certificates, token and keys stay as they were", "error", err)
	default:
		log.Info("SIGHUP: certificates, token and keys are read again; open connections keep theirs")
	}
	noteManager(log, notify.Ready("serving"))
}

// renew replaces the secrets of a server.
func (f *serveFlags) renew(s *server.Server) error {
	x, err := f.secrets()
	if err != nil {
		return err
	}
	return s.Reload(x)
}

// noteManager logs that the service manager cannot be reached, which hinders no client.
func noteManager(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("the service manager does not know the state", "error", err)
	}
}

// found opens the pool and its file system, and formats them first if all devices are blank.
func (f *serveFlags) found(p *program, args []string) (*ctl.Pool, *cfs.FS, error) {
	o := f.pool.options()
	var divided ctl.Division
	o.Pool.Budget.Most, o.Pool.Budget.Least = 0, f.cfg.LeastFrames()
	o.Pool.Budget.Users = f.cfg.Memory(int64(f.pool.memory.bytes))
	o.Pool.Budget.Divided = func(d ctl.Division) {
		divided = d
		limitHeap(d.Heap)
	}
	f.trouble.log, f.trouble.now = f.cfg.Log, time.Now
	o.Pool.Trouble = f.trouble.report
	blank := 0
	for _, path := range args {
		state, err := pool.Probe(path)
		switch {
		case err != nil:
			return nil, nil, verb.BadInput(err)
		case state == pool.Missing && f.size.bytes == 0:
			return nil, nil, verb.Usagef(
				"%s %w; give the size of its disk: farflash flash serve %s --size 10GiB", path, pool.ErrMissing,
				path)
		case state != pool.Formatted:
			blank++
		}
	}
	switch blank {
	case 0:
	case len(args):
		first, disk := []string{server.Name(f.disk)}, f.disk
		if all := f.exports.exports; len(all) > 0 { // made below
			first, disk = nil, ""
			for _, x := range all {
				first = append(first, server.Name(x.name))
			}
		}
		if err := f.rates.known(func(name string) bool { return slices.Contains(first, name) },
			func() ([]string, error) { return first, nil }); err != nil {
			return nil, nil, verb.BadInput(err) // check before formatting: a new pool has no other file
		}
		if err := fits(o, uint64(f.size.bytes), len(args)); err != nil {
			return nil, nil, err
		}
		if _, err := p.makePool(o, uint64(f.size.bytes), disk, args...); err != nil {
			return nil, nil, verb.BadInput(err)
		}
	default:
		return nil, nil, verb.Usagef("some of %s belong to a pool and some are empty; give the devices of one pool",
			strings.Join(args, ", "))
	}
	var err error
	if f.cfg.Loops, err = pool.Threads(o, f.threads); err != nil {
		return nil, nil, verb.BadInput(err)
	}
	if o.Loops = f.cfg.Loops; o.Loops != nil {
		o.Loops.Spin(f.spin)
	}
	opened, ring, err := pool.Open(o, args...)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, nil, verb.BadInput(fmt.Errorf("%w; another daemon may be serving it: stop it first", err))
	case err != nil:
		return nil, nil, refused(err, args)
	}
	noteFound(func(format string, args ...any) { f.cfg.Log.Warn(fmt.Sprintf(format, args...)) }, args[0], opened)
	tree, err := cfs.Open(opened, cfs.Config{Now: time.Now})
	if errors.Is(err, cfs.ErrNoFS) {
		err = fmt.Errorf("%w; if its data can be lost, format it: farflash flash format --overwrite %s", err,
			strings.Join(args, " "))
	}
	if err == nil {
		err = f.exports.make(tree, f.cfg.Log)
	}
	if err == nil && f.size.bytes != 0 && blank == 0 && len(f.exports.exports) == 0 {
		var i cfs.Status
		if i, err = tree.Stat(super, f.disk); err == nil && i.Size != int64(f.size.bytes) {
			err = fmt.Errorf("%s has %d bytes, not %v; leave out --size, or resize it: farflash flash fs truncate",
				f.disk, i.Size, f.size.bytes)
		}
	}
	if err != nil {
		return nil, nil, verb.BadInput(fmt.Errorf("%s: %w", args[0], errors.Join(err, opened.Close())))
	}
	way := "io_uring"
	if !ring {
		way = "pread and pwrite"
	}
	how := "closed cleanly"
	if x := opened.Found(); !x.Clean {
		how = "recovered after a crash"
	}
	shape := opened.Shape()
	fmt.Fprintf(p.Out, "%s: pool %v, %s, over %s, %s\n", strings.Join(args, ", "), shape.UUID,
		term.Size(float64(shape.Capacity*ctl.Page)), way, how)
	fmt.Fprintln(p.Out, parts(f.pool.memory.bytes, divided))
	return opened, tree, nil
}

// parts says how memory is divided.
func parts(memory units.Bytes, d ctl.Division) string {
	return fmt.Sprintf("memory %v: %d MiB for pages, %d for the map, %d for segments, connections and writes in flight, "+
		"%d spare", memory, d.Pages>>20, d.Map>>20, d.Fixed>>20, d.Spare>>20)
}

// fits verifies that a budget suffices for a pool before that is made, if its devices are.
func fits(o pool.Options, size uint64, devices int) error {
	var s *ctl.Scarce
	if shape, _, err := pool.Fit(o.Layout, size, make([]int64, devices)...); err == nil { // or makePool says so
		if _, err := o.Pool.Budget.Divide(shape, &o.Pool); errors.As(err, &s) {
			return scarce(s)
		}
	}
	return nil
}

// refused is the error for a pool that cannot be opened. If it is damaged, it says what can be done.
func refused(err error, devices []string) error {
	var s *ctl.Scarce
	if errors.As(err, &s) {
		return scarce(s)
	}
	if errors.Is(err, pool.ErrMissing) {
		for _, d := range devices {
			if _, err := netip.ParseAddrPort(d); err == nil {
				return verb.BadInput(fmt.Errorf("%s is an address, and does not exist as a file; give the pool's device, "+
					"such as data.img, also while a daemon serves it", d))
			}
		}
	}
	if errors.Is(err, ctl.ErrDamaged) || errors.Is(err, media.ErrForeign) {
		all := strings.Join(devices, " ")
		err = fmt.Errorf("%w\ncopy its files out with: farflash flash salvage %s DIR; repair it with: farflash flash "+
			"check "+
			"--repair %s", err, all, all)
	}
	return verb.BadInput(err)
}

// openPool opens a pool and prints what noteFound does. The caller calls done at the end, which closes the pool and
// adds the error of that.
func (p *program) openPool(o pool.Options, devices []string) (opened *ctl.Pool, done func(*error), err error) {
	if opened, _, err = pool.Open(o, devices...); err != nil {
		return nil, nil, refused(err, devices)
	}
	noteFound(p.Note, devices[0], opened)
	return opened, func(err *error) {
		if closing := opened.Close(); closing != nil {
			*err = errors.Join(*err, verb.Failed(closing))
		}
	}, nil
}

// noteFound prints what was damaged when a pool was opened, and why it is read-only, if it is.
func noteFound(note func(format string, args ...any), device string, opened *ctl.Pool) {
	for _, x := range opened.Found().Lost {
		note("%s: damaged, and rebuilt without loss: %v", device, x)
	}
	if err := opened.ReadOnly(); err != nil {
		note("%s: %v", device, err)
	}
}

func (p *program) serve(cmd *cobra.Command, f *serveFlags, args []string) (err error) {
	if f.cfg.Log, err = logger(f.log, cmd.ErrOrStderr()); err != nil {
		return err
	}
	f.cfg.Version = p.Version
	f.rates = f.exports.limits
	for _, text := range f.limits {
		l, err := parseLimit(text)
		if err != nil {
			return verb.BadInput(fmt.Errorf("--limit %q: %w", text, err))
		}
		f.rates = append(f.rates, l)
	}
	if f.cfg.Limits, err = f.rates.byName(); err != nil {
		return verb.BadInput(err)
	}
	secrets, err := f.secrets()
	if err != nil {
		return verb.BadInput(err)
	}
	if f.files && !cmd.Flags().Changed("exports") {
		f.cfg.Open = 1024 // a mount has one for each open file
	}
	f.cfg.TLS, f.cfg.Token, f.cfg.Keys = secrets.TLS, secrets.Token, secrets.Keys
	if err := f.cfg.Check(); err != nil {
		return verb.BadInput(f.exports.placed(err))
	}
	p.Keeping()
	if f.spin < 0 || f.spin > time.Second {
		return verb.Usagef("--spin: %v; give 0s to 1s", f.spin)
	}
	if f.threads < 0 || f.threads > pool.MaxThreads {
		return verb.Usagef("--threads: %d; give 1 to %d, or 0 for half the number of processors", f.threads,
			pool.MaxThreads)
	}
	defer func() {
		if f.cfg.Loops != nil {
			err = errors.Join(err, verb.Failed(f.cfg.Loops.Close()))
		}
	}()
	opened, tree, err := f.found(p, args)
	if err != nil {
		return err
	}
	defer func() {
		closing := opened.Close()
		switch n := f.trouble.end(); {
		case closing != nil:
			err = errors.Join(err, verb.Failed(fmt.Errorf("%s: %w", args[0], closing)))
		case err != nil:
		case n > 0:
			err = verb.Failed(fmt.Errorf("%s: stopped, but while it was served, operations of its devices failed, or "+
				"found "+
				"damaged pages: %d; look for what is lost with: farflash flash check %s", args[0], n,
				strings.Join(args, " ")))
		default:
			fmt.Fprintln(p.Out, "stopped; everything is on the devices")
		}
	}()
	f.cfg.Pool, f.cfg.Files, f.cfg.Keeper = opened, server.Tree(tree, super), tree
	if f.files {
		f.cfg.Requests = server.Requests(tree, super)
	}
	if err := f.named(cmd.Flags().Changed("disk"), tree); err != nil {
		return err
	}
	if f.record != "" {
		if f.most.bytes < recorder.Least {
			return verb.BadInput(f.exports.placed(&server.Fault{Setting: "record-size",
				Err: fmt.Errorf("%v are too few; give %v or more", f.most.bytes, units.Bytes(recorder.Least))}))
		}
		f.cfg.Recorder, err = recorder.New(recorder.Config{Path: f.record, Size: int64(f.most.bytes), Log: f.cfg.Log})
		if err != nil {
			return verb.BadInput(f.exports.placed(&server.Fault{Setting: "record", Err: err}))
		}
		defer func() { err = errors.Join(err, verb.Failed(f.cfg.Recorder.Close())) }()
	}
	s, err := server.New(f.cfg)
	if err != nil {
		return verb.BadInput(f.exports.placed(err))
	}
	if err := s.Listen(); err != nil {
		return verb.BadInput(f.exports.placed(err))
	}
	for name, err := range f.cfg.Files.List() {
		if err != nil {
			return verb.Failed(errors.Join(err, s.Drain(0)))
		}
		i, err := tree.Stat(super, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return verb.Failed(errors.Join(err, s.Drain(0)))
		}
		fmt.Fprintf(p.Out, "export %s, %s\n", name, units.Bytes(i.Size))
	}
	socket := cmp.Or(f.control, live.Socket(args[0]))
	door, err := attend(socket, tree, s, args)
	switch {
	case err != nil && f.control != "":
		return verb.BadInput(f.exports.placed(errors.Join(&server.Fault{Setting: "control", Err: err}, s.Drain(0))))
	case err != nil: // clients are served nevertheless: the directory of a device may not be one for sockets
		f.cfg.Log.Warn("farflash flash fs cannot be used while this daemon runs: give it a socket with --control",
			"error", err)
	default:
		whole := p.Unfinished(literal.Replace(socket)) // removed however the daemon ends
		defer whole()
		defer func() { err = errors.Join(err, verb.Failed(door.Close(f.drain))) }()
	}
	p.Hangup(func() { f.reload(cmd, s, tree) }) // before anyone learns that it serves
	at := f.addresses(s.Addresses()) + paths(s)
	fmt.Fprint(p.Out, at)
	for _, a := range s.Paths() {
		fmt.Fprintf(p.Out, "  nvme connect -t tcp -a %v -s %d -n %s\n", a.IP, a.Port, s.Subsystem())
	}
	if f.ready != "" {
		whole := p.Unfinished(f.ready) // removed however the daemon ends
		defer whole()
		if err := os.WriteFile(f.ready+".part", []byte(at), 0o600); err != nil {
			return verb.Failed(errors.Join(err, s.Drain(0)))
		}
		if err := os.Rename(f.ready+".part", f.ready); err != nil {
			return verb.Failed(errors.Join(err, s.Drain(0)))
		}
		defer func() { err = errors.Join(err, verb.Failed(os.Remove(f.ready))) }()
	}
	fmt.Fprintln(p.Out, "serving; Ctrl-C stops it")
	noteManager(f.cfg.Log, notify.Ready("serving"))
	<-cmd.Context().Done()
	noteManager(f.cfg.Log, notify.Stopping())
	f.cfg.Log.Info("stopping: completing requests in flight")
	return verb.Failed(s.Drain(f.drain))
}

// attend executes flash fs and flash ctl for other processes while the pool is served.
func attend(socket string, tree *cfs.FS, s *server.Server, devices []string) (*live.Server, error) {
	l, err := server.ListenUnix(&net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return live.Serve(tree, l,
		live.Daemon{Changed: s.Refresh, Report: func() any { return s.Status() }, Control: s.Obey}, devices...)
}

// there reports whether an export exists, and names lists all.
func (f *serveFlags) there(tree *cfs.FS) (there func(name string) bool, names func() ([]string, error)) {
	there = func(name string) bool {
		at, err := tree.Stat(super, name)
		return err == nil && at.Kind != cfs.Directory
	}
	names = func() (all []string, err error) {
		for known, err := range f.cfg.Files.List() {
			if err != nil {
				return nil, err
			}
			all = append(all, known)
		}
		return all, nil
	}
	return there, names
}

// named verifies that the exports named by flags exist when the daemon starts.
func (f *serveFlags) named(disk bool, tree *cfs.FS) error {
	there, names := f.there(tree)
	if err := f.rates.known(there, names); err != nil {
		return verb.BadInput(err)
	}
	f.cfg.Default = server.Name(f.disk)
	switch {
	case f.cfg.Default == "" || there(f.cfg.Default):
	case disk:
		all, err := names()
		if err != nil {
			return verb.Failed(err)
		}
		return verb.BadInput(fmt.Errorf("--disk: %w", server.Absent(f.cfg.Default, all)))
	default:
		f.cfg.Default = "" // a pool of other files has no default export
	}
	return nil
}

// inQuery undoes escapes of a path that NBD's URIs do not need, and a space's that they do not have.
var inQuery = strings.NewReplacer("%2F", "/", "+", "%20")

// addresses lists the served addresses, one per line.
func (f *serveFlags) addresses(iwarp, nbd, metrics string) string {
	text := ""
	if iwarp != "" {
		text += "iwarp " + iwarp + "\n"
	}
	if nbd != "" {
		scheme := "nbd"
		if f.cfg.TLS != nil {
			scheme = "nbds"
		}
		if path, unix := strings.CutPrefix(nbd, "unix:"); unix {
			text += "nbd " + scheme + "+unix:///" + f.cfg.Default + "?socket=" +
				inQuery.Replace(url.QueryEscape(path)) + "\n"
		} else {
			text += "nbd " + scheme + "://" + nbd + "/" + f.cfg.Default + "\n"
		}
	}
	switch {
	case strings.HasPrefix(metrics, "unix:"):
		text += "metrics " + metrics + " /metrics\n"
	case metrics != "":
		text += "metrics http://" + metrics + "/metrics\n"
	}
	return text
}

// paths lists the addresses of the NVMe subsystem, one per line, as libnvme writes them.
func paths(s *server.Server) (text string) {
	for _, a := range s.Paths() {
		text += fmt.Sprintf("nvme nvme+tcp://%v/%s\n", a, s.Subsystem())
	}
	return text
}

// makePool formats a pool with a file system and, unless disk is empty, one file of the given size or of the pool's
// capacity. It is atomic: files that it created are removed if it fails or the program is ended. While it
// formats a device that existed before, a signal waits until the pool is complete.
func (p *program) makePool(o pool.Options, size uint64, disk string, paths ...string) (media.Shape, error) {
	// The file system's own metadata comes on top of the requested size.
	const own = 1 << 20
	if size > 0 {
		size += own
	}
	var made, there []string
	var notes []func()
	o.OnFormat = func(path string, fresh bool) {
		if fresh {
			made = append(made, path)
			notes = append(notes, p.Unfinished(literal.Replace(path)))
		} else {
			there = append(there, path)
			p.Keeping()
		}
	}
	defer func() {
		for _, whole := range notes {
			whole()
		}
	}()
	shape, err := pool.Format(o, size, paths...)
	if err == nil {
		if size == 0 {
			size = uint64(shape.Capacity) * ctl.Page
			if size < 2*own {
				disk = ""
			}
		}
		if err = formatFiles(o, disk, int64(size-own), paths...); err != nil {
			for _, path := range made {
				err = errors.Join(err, os.Remove(path))
			}
		}
	}
	if err != nil && len(there) > 0 {
		err = fmt.Errorf("%w; %s may now hold part of a pool: farflash flash format --overwrite %[2]s", err,
			strings.Join(there, " "))
	}
	return shape, err
}

// literal escapes a path so that as a glob pattern it matches only itself.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

func (p *program) flashCheck() *cobra.Command {
	var f poolFlags
	quick, repair, yes := false, false, false
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check a pool and its files, and repair them",
		Long: `Open a pool as the daemon does, with recovery if it was not closed, and check the
mapping in both directions, segments and their summaries, the checksum of every
page, and the file system. Violations are printed with their place; the exit code
is then 1.

--repair first prints the damage and everything that it will drop or rewrite,
asks for a yes, and only then writes. It also handles pools that cannot be opened
otherwise. To be safe, copy the files out first with flash salvage.`,
		Example: `  farflash flash check data.img
  farflash flash check data.img --repair`,
		Args: verb.Arguments(1, -1, "the devices of one pool"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o := f.options()
			switch {
			case yes && !repair:
				return verb.Usagef("--yes agrees to a repair: give --repair too")
			case quick && repair:
				return verb.Usagef("--repair reads all pages, so --quick does not apply")
			case repair:
				if repaired, err := p.repair(cmd.Context(), o, yes, args...); err != nil || !repaired {
					return err
				}
			}
			opened, done, err := p.openPool(o, args)
			if err != nil {
				return err
			}
			defer done(&err)
			r := opened.Check(!quick)
			all := r.Violations
			files, _, err := cfs.CheckPool(opened, cfs.Config{Now: time.Now})
			switch {
			case errors.Is(err, cfs.ErrNoFS):
				p.Note("%s: no file system", args[0])
			case err != nil:
				return verb.Failed(fmt.Errorf("%s: %w", args[0], err))
			}
			all = append(all, files.Violations...)
			for _, v := range all {
				fmt.Fprintln(p.Out, v)
			}
			violations := spelling.Plural(len(all), "violation")
			fmt.Fprintf(p.Out, "%s: %s in use, %s read, %d summaries; %s and %s; %s\n", strings.Join(args, ", "),
				spelling.Plural(int(r.Pages), "page"), spelling.Plural(int(r.Contents), "content"), r.Summaries,
				spelling.Plural(files.Files, "file"), spelling.Plural(files.Directories, "directory"), violations)
			if len(all) > 0 {
				return verb.Failed(fmt.Errorf("%s: %s; to see what a repair would do: farflash flash check "+
					"--repair %s", args[0], violations, strings.Join(args, " ")))
			}
			return nil
		},
	}
	f.register(cmd, mostMemory)
	cmd.Flags().BoolVar(&quick, "quick", false, "do not read page contents")
	cmd.Flags().BoolVar(&repair, "repair", false, "repair the damage, after a yes")
	cmd.Flags().BoolVar(&yes, "yes", false, "repair without asking")
	return cmd
}
