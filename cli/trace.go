package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/experiment/drive"
	"farflash/internal/spelling"
	"farflash/internal/term"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario/convert"
	"farflash/workload"
	"farflash/workload/characterise"
	"farflash/workload/fit"
	"farflash/workload/trace"
)

// traceFlags holds the flags for reading a trace.
type traceFlags struct {
	format  string
	skipBad int64
	volume  string
	window  int
	seed    uint64
	columns string
	unit    string
}

func (f *traceFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.format, "format", "auto", "trace `format` (farflash list formats)")
	fl.Int64Var(&f.skipBad, "skip-bad", 0, "skip up to `N` bad records, and count them")
	fl.StringVar(&f.volume, "volume", "", "read only the volume of this `name`")
	fl.IntVar(&f.window, "window", 0, "sort records by time within a window of `N` (default the format's own)")
	fl.Uint64Var(&f.seed, "seed", 1, "random seed to spread timestamps in whole seconds")
	fl.StringVar(&f.columns, "columns", "",
		"`columns` of a table, by number or name, such as time=1,op=2,offset=lba,size=bytes")
	fl.StringVar(&f.unit, "unit", "", "`units` of a table's columns, such as time=1us,offset=512B,size=512B")
	verb.Must(cmd.RegisterFlagCompletionFunc("format", completeFormat))
}

func (f *traceFlags) open(p *program, path string) (*trace.Reader, error) {
	o := trace.Options{Seed: f.seed, SkipBad: f.skipBad, Volume: f.volume, Window: f.window}
	var err error
	if o.Format, err = trace.ParseFormat(f.format); err != nil {
		return nil, verb.Usagef("--format: %w", err)
	}
	if o.CSV, err = parseTable(f.columns, f.unit); err != nil {
		return nil, err
	}
	if path == "-" {
		r, err := trace.NewReader(p.in, "standard input", o)
		return r, verb.BadInput(err)
	}
	r, err := trace.Open(path, o)
	return r, verb.BadInput(err)
}

func (p *program) trace() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Read, convert, fit and generate traces",
		Args:  verb.Unknown,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.traceInfo(), p.traceConvert(), p.traceFit(), p.traceSynth())
	return cmd
}

func (p *program) traceInfo() *cobra.Command {
	var f traceFlags
	asJSON := false
	cmd := &cobra.Command{
		Use:   "info FILE",
		Short: "Describe a trace",
		Long: `Describe a trace: counts, sizes, inter-arrival times, sequential share, footprint
and rates. Format and compression are detected.`,
		Example: `  farflash trace info hm_0.csv
  farflash trace info cbs.bz2 --format tencent --json`,
		Args: verb.Arguments(1, 1, "one trace, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, notes, err := f.measure(p, args[0])
			if err != nil {
				return err
			}
			for _, n := range notes {
				p.note("%s: %s", args[0], n)
			}
			if asJSON {
				w := json.NewEncoder(p.data)
				w.SetIndent("", "  ")
				return verb.Failed(w.Encode(m))
			}
			return verb.Failed(p.printInfo(&m))
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// measure characterises a whole trace; notes are the reader's remarks.
func (f *traceFlags) measure(p *program, file string) (m characterise.Result, notes []string, err error) {
	r, err := f.open(p, file)
	if err != nil {
		return m, nil, err
	}
	defer r.Close()
	if m, err = characterise.Run(r); err != nil {
		return m, nil, verb.BadInput(err)
	}
	m.Format = r.Format().String()
	return m, r.Notes(), nil
}

func (p *program) printInfo(m *characterise.Result) error {
	style := p.style()
	fmt.Fprintf(p.out, "%s trace, %s requests in %s\n\n", m.Format, term.Count(float64(m.Requests)),
		term.Seconds(m.Span))
	t := term.NewTable(term.Left(""), term.Right("reads"), term.Right("writes"))
	two := func(name string, f func(*characterise.Side) string) { t.Row(name, f(&m.Reads), f(&m.Writes)) }
	number := func(v characterise.Number, f func(float64) string) string {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return "-"
		}
		return f(float64(v))
	}
	three := func(v float64) string { return term.Significant(v, 3) }
	two("count", func(s *characterise.Side) string { return term.Count(float64(s.Count)) })
	two("bytes", func(s *characterise.Side) string { return term.Size(float64(s.Bytes)) })
	two("mean size", func(s *characterise.Side) string { return number(s.Size.Mean, term.Size) })
	two("  scv", func(s *characterise.Side) string { return number(s.Size.SCV, three) })
	two("  skewness", func(s *characterise.Side) string { return number(s.Size.Skewness, three) })
	two("  lag-1 correlation", func(s *characterise.Side) string { return number(s.Size.ACF1, three) })
	two("mean inter-arrival", func(s *characterise.Side) string { return number(s.Interarrival.Mean, term.Latency) })
	two("  scv", func(s *characterise.Side) string { return number(s.Interarrival.SCV, three) })
	two("  skewness", func(s *characterise.Side) string { return number(s.Interarrival.Skewness, three) })
	two("  lag-1 correlation", func(s *characterise.Side) string { return number(s.Interarrival.ACF1, three) })
	two("sequential bytes, 1 stream",
		func(s *characterise.Side) string { return number(s.SequentialRatio.One, term.Percent) })
	two("  8 streams", func(s *characterise.Side) string { return number(s.SequentialRatio.Eight, term.Percent) })
	two("  32 streams", func(s *characterise.Side) string { return number(s.SequentialRatio.ThirtyTwo, term.Percent) })
	if err := t.Write(p.out, style); err != nil {
		return err
	}
	fmt.Fprintln(p.out)
	t = term.NewTable(term.Left(""), term.Right(""))
	t.Row("footprint", term.Size(float64(m.Footprint)))
	t.Row("  of writes", term.Size(float64(m.WriteFootprint)))
	t.Row("written per day", number(m.WriteRatePerDay, term.Size))
	if within := number(m.WriteRateWithin, term.Percent); within != "-" {
		t.Row("  95 % interval", "+- "+within)
	}
	if m.Span < units.Day.Seconds() && m.Writes.Count > 0 {
		t.Row("  measured over", term.Seconds(m.Span))
	}
	t.Row("5-minute peak", number(m.PeakIOPS, term.Rate)+" IOPS")
	t.Row("volumes", term.Count(float64(m.Volumes)))
	t.Row("highest byte", term.Size(float64(m.HighestByte)))
	t.Row("out of order", term.Count(float64(m.OutOfOrder)))
	for _, x := range []struct {
		name string
		n    int64
	}{{"trims", m.Trims}, {"flushes", m.Flushes}, {"bad records skipped", m.Skipped}} {
		if x.n > 0 {
			t.Row(x.name, term.Count(float64(x.n)))
		}
	}
	if err := t.Write(p.out, style); err != nil || len(m.PerVolume) == 0 {
		return err
	}
	fmt.Fprintln(p.out)
	return p.printVolumes(m)
}

// volumesShown limits the volumes printed on a terminal; JSON has all.
const volumesShown = 12

func (p *program) printVolumes(m *characterise.Result) error {
	t := term.NewTable(term.Left("volume"), term.Right("requests"), term.Right("share"), term.Right("read"),
		term.Right("written"), term.Right("highest byte"))
	row := func(name string, s *characterise.Share, highest string) {
		t.Row(name, term.Count(float64(s.Requests)), term.Percent(float64(s.Requests)/float64(m.Requests)),
			term.Size(float64(s.ReadBytes)), term.Size(float64(s.WriteBytes)), highest)
	}
	var rest characterise.Share
	for i := range m.PerVolume {
		s := &m.PerVolume[i]
		if i < volumesShown {
			row(result.Literal(s.Name), s, term.Size(float64(s.HighestByte)))
			continue
		}
		rest.Requests, rest.ReadBytes, rest.WriteBytes = rest.Requests+s.Requests, rest.ReadBytes+s.ReadBytes,
			rest.WriteBytes+s.WriteBytes
	}
	if more := len(m.PerVolume) - volumesShown; more > 0 {
		row(fmt.Sprintf("%d others", more), &rest, "")
	}
	return t.Write(p.out, p.style())
}

// output opens the destination of a trace: a new file, or standard output for -.
func (p *program) output(name string) (io.WriteCloser, error) {
	if name == "-" || name == "" {
		return nopCloser{p.data}, nil
	}
	f, err := createNew(name)
	if err != nil {
		return nil, err
	}
	return &newFile{f, p.unfinished(result.Literal(name))}, nil
}

// newFile is a file that is removed if the command is cut short before the file is closed.
type newFile struct {
	*os.File
	whole func()
}

// Close implements io.Closer.
func (f *newFile) Close() error {
	err := f.File.Close()
	f.whole()
	return err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// writeTrace writes the requests that each passes to its argument.
func (p *program) writeTrace(name, format string, o trace.WriterOptions,
	each func(func(*workload.Record) error) error) (err error) {
	to, err := trace.ParseFormat(format)
	if err != nil || !slices.Contains(trace.Writable(), to) {
		return verb.Usagef("--to: %w",
			&units.TextError{Text: format, Is: "is not a trace format that can be written",
				Use: spelling.OrList(writableNames()), Near: spelling.Nearest(format, writableNames())})
	}
	out, err := p.output(name)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, verb.Failed(out.Close()))
		if err != nil && name != "" && name != "-" {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	w, err := trace.NewWriter(out, to, o)
	if err != nil {
		return verb.BadInput(err)
	}
	if err := each(w.Write); err != nil {
		return verb.BadInput(err)
	}
	if err := w.Close(); err != nil {
		return verb.Failed(err)
	}
	for _, n := range w.Notes() {
		p.note("%s", n)
	}
	p.note("%d requests written as %v", w.Written(), to)
	return nil
}

func writableNames() []string {
	var names []string
	for _, f := range trace.Writable() {
		names = append(names, f.String())
	}
	return names
}

func (p *program) traceConvert() *cobra.Command {
	var f traceFlags
	to := ""
	leaveOut := false
	cmd := &cobra.Command{
		Use:   "convert FILE [OUT]",
		Short: "Write a trace in another format",
		Long:  "Write a trace in another format, to a new file or to standard output.",
		Example: `  farflash trace convert hm_0.csv hm_0.trace --to mqsim
  zcat cbs.gz | farflash trace convert - cbs.csv --format tencent --to msr`,
		Args: verb.Arguments(1, 2, "a trace and at most one file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return verb.Usagef("--to is missing; use one of %s",
					strings.Join(writableNames(), ", "))
			}
			r, err := f.open(p, args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			// Read the first record before the options are built, because it sets the start.
			var rec workload.Record
			first := r.Next(&rec)
			o := trace.WriterOptions{VolumeName: r.VolumeName, LeaveOut: leaveOut}
			o.Start, o.StartRest = r.Start()
			out := ""
			if len(args) == 2 {
				out = args[1]
			}
			err = p.writeTrace(out, to, o, func(write func(*workload.Record) error) error {
				for err := first; ; err = r.Next(&rec) {
					if errors.Is(err, io.EOF) {
						return nil
					}
					if err != nil {
						return err
					}
					if err := write(&rec); err != nil {
						return err
					}
				}
			})
			for _, n := range r.Notes() {
				p.note("%s: %s", args[0], n)
			}
			return err
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the `format` to write: "+strings.Join(writableNames(), ", "))
	cmd.Flags().BoolVar(&leaveOut, "leave-out", false, "omit requests that the format cannot represent, and count them")
	return cmd
}

func (p *program) traceFit() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "fit FILE",
		Short: "Fit a synthetic workload to a trace",
		Long: `Fit a synthetic workload to a trace, and print it as a scenario's workload section.
Its sizes and inter-arrival times have the trace's mean, squared coefficient of
variation, skewness and lag-1 correlation, as far as an MMPP(2) can match them;
comments list what it cannot. Add an ssd section to run it.`,
		Example: `  farflash trace fit hm_0.csv > like-hm.yaml
  farflash trace fit cbs.bz2 --format tencent --volume 1063 > like-1063.yaml`,
		Args: verb.Arguments(1, 1, "one trace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, notes, err := f.measure(p, args[0])
			if err != nil {
				return err
			}
			x, err := fit.Synthetic(m)
			if err != nil {
				return verb.BadInput(fmt.Errorf("%s: %w", args[0], err))
			}
			fmt.Fprint(p.data, convert.FromFit(args[0], x.Config, append(notes, x.Notes...)))
			return nil
		},
	}
	f.register(cmd)
	return cmd
}

func (p *program) traceSynth() *cobra.Command {
	var set []string
	seed := uint64(1)
	to := "mqsim"
	cmd := &cobra.Command{
		Use:   "synth SCENARIO [OUT]",
		Short: "Write a scenario's workload as a trace",
		Long: `Write the requests of a scenario's workload as a trace, to a new file or to
standard output. The scenario needs no ssd section: the output of trace fit works.`,
		Example: `  farflash trace synth like-hm.yaml like-hm.csv --to msr --seed 7
  farflash trace synth like-hm.yaml - --to mqsim > like-hm.trace`,
		Args: verb.Arguments(1, 2, "a scenario and at most one file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := p.openWorkload(args[0], set)
			if err != nil {
				return err
			}
			out := ""
			if len(args) == 2 {
				out = args[1]
			}
			return p.writeTrace(out, to, trace.WriterOptions{}, func(write func(*workload.Record) error) error {
				notes, err := drive.Requests(s, seed, write)
				for _, n := range notes {
					p.note("%s", n)
				}
				return err
			})
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a value: `path=value` (repeatable)")
	cmd.Flags().Uint64Var(&seed, "seed", seed, "random seed")
	cmd.Flags().StringVar(&to, "to", to, "the `format` to write: "+strings.Join(writableNames(), ", "))
	return cmd
}
