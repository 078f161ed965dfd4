package system

import (
	"errors"
	"math"
	"slices"

	"farflash/block"
	"farflash/experiment"
	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// NewController returns the rate controller of a target with n drives.
type NewController func(target, drives int) (ratecontrol.Controller, error)

// steer installs the targets' rate controllers. group has the group of each drive.
func (y *remote) steer(o *experiment.Options, group []int, controller NewController) error {
	cfg := ratecontrol.DefaultConfig()
	if y.s.RateControl != nil {
		cfg = *y.s.RateControl
	}
	f := y.s.Fabric
	link := nvmf.Link{Rate: f.HostLink, Share: float64(f.Payload) / float64(f.Payload+f.Header+f.Telemetry.Size),
		Ack: float64(f.Acks.Size+f.Telemetry.AckSize) / float64(int64(f.Acks.Every)*int64(f.Payload))}
	if acked, err := answersAcked(&f.Config, f.HostLink); err != nil {
		return err
	} else if !acked {
		link.Ack = 0
	}
	for t := range int32(y.sys.Targets()) {
		drives := y.sys.DrivesOf(t)
		own := y.s.Steered(group[drives[0]])
		var ctl ratecontrol.Controller
		var err error
		if controller != nil {
			ctl, err = controller(int(t), len(drives))
		} else {
			var predict []ratecontrol.Predictor
			if cfg.Kind == ratecontrol.SRC {
				p, err := predictor(y.s, o, own)
				if err != nil {
					return err
				}
				for range drives {
					predict = append(predict, p)
				}
			}
			ctl, err = ratecontrol.New(cfg, predict)
		}
		if err != nil {
			return err
		}
		if ctl == nil {
			return errors.New("no controller")
		}
		// With more commands than a drive fetches from a queue, the rest would wait where weights have no effect.
		if err := y.sys.Steer(t, ctl, own.Host.FetchSize, link, len(cfg.Demands) > 0); err != nil {
			return err
		}
	}
	y.sys.Demands(cfg.Demands)
	if len(cfg.Demands) == 0 {
		y.net.Net.OnRate = y.sys.Paced
	}
	y.steered = true
	return nil
}

// answersAcked reports whether the data of writes, which are answers to RDMA Reads, have acknowledgements on the path
// of the reads, by the rules of fabric.acks.answers.
func answersAcked(f *fabric.Config, line units.BitRate) (bool, error) {
	alg, err := cc.New(f.CongestionControl, 1)
	if err != nil {
		return false, err
	}
	s := cc.Sender{Rate: line, Line: line, BDP: f.Payload, BaseRTT: units.Microsecond, MTU: f.Payload,
		Wake: sim.Forever}
	alg.Start(0, &s)
	w := alg.Wants()
	return f.Acks.Answers != setting.AnswersAuto || f.Recovery.Kind.Keeps() || w.Acks || w.Pulls ||
		w.CNPs && f.CNP.Echo || s.Window > 0, nil
}

// predictor returns a drive's predictor: the model in the scenario's file, or that of Options.Predict.
func predictor(s *scenario.Scenario, o *experiment.Options, own *scenario.Drive) (ratecontrol.Predictor, error) {
	switch m, err := s.Model(); {
	case err != nil:
		return nil, units.Wrong("model", "%v", err)
	case m != nil:
		return m, nil
	case o.Predict == nil:
		return nil, units.Wrong("model",
			"no trainer for a model of the drive; give a file written by farflash predict train")
	}
	return o.Predict(own, s.RateControl.Partition)
}

// rateMeter observes rate controllers: the demand on them, their settings, and the resulting rates.
type rateMeter struct {
	s     *scenario.Scenario
	y     *remote
	width units.Duration
	marks []rateMark
	read  int64 // bytes read by drives until the end of the last slice
	sent  int64 // bytes of reads received by initiators
}

// rateMark is the state at the end of a slice: means over targets or drives, or sums where stated.
type rateMark struct {
	at          sim.Time
	demanded    float64 // bytes/s, sum over targets
	ratio       float64
	tokens      [2]float64
	txq         float64 // bytes
	inside      [2]float64
	waiting     [2]float64
	read        int64 // bytes read by drives in the slice
	sent        int64 // bytes of reads received by initiators in it
	predictions uint64
}

// Slices are a millisecond, the resolution of control delays, until there are too many.
const (
	rateSlice  = units.Millisecond
	rateSlices = 16384
	rateShown  = 512 // points of a series
)

func newRateMeter(s *scenario.Scenario, y *remote) *rateMeter {
	return &rateMeter{s: s, y: y, width: rateSlice}
}

// Next implements experiment.Meter.
func (m *rateMeter) Next() sim.Time {
	n := units.Duration(len(m.marks) + 1)
	if m.width > sim.Forever/n {
		return sim.Forever
	}
	return m.width * n
}

// Slice implements experiment.Meter.
func (m *rateMeter) Slice(at sim.Time) bool {
	k := rateMark{at: at}
	drives, sent := 0.0, int64(0)
	for t := range int32(m.y.sys.Targets()) {
		sent += m.y.sys.Received(t)
		st, queues := m.y.sys.Steering(t)
		k.demanded += m.y.sys.Demanded(t)
		k.txq += float64(m.y.sys.InTXQ(t))
		k.predictions += st.Predictions
		for d, q := range queues {
			drives++
			k.ratio += st.Weights[d].Ratio()
			r, w := q.Tokens()
			k.tokens[0] += float64(r)
			k.tokens[1] += float64(w)
			for i := range k.inside {
				k.inside[i] += float64(q.Inside(i))
				k.waiting[i] += float64(q.Waiting(i))
			}
		}
	}
	k.txq /= float64(m.y.sys.Targets())
	for _, x := range []*float64{&k.ratio, &k.tokens[0], &k.tokens[1], &k.inside[0], &k.inside[1], &k.waiting[0],
		&k.waiting[1]} {
		*x /= drives
	}
	read := int64(0)
	for _, d := range m.y.drives {
		x := d.StatsAt(at)
		read += x.Bytes[block.Read]
	}
	k.read, m.read = read-m.read, read
	k.sent, m.sent = sent-m.sent, sent
	m.marks = append(m.marks, k)
	if len(m.marks) == rateSlices {
		m.marks = joined(m.marks, 2)
		m.width *= 2
	}
	return false
}

// End implements experiment.Meter.
func (m *rateMeter) End(at sim.Time) {
	if n := len(m.marks); n == 0 || m.marks[n-1].at < at {
		m.Slice(at)
	}
}

// joined merges groups of n slices: means of levels, sums of bytes read and received.
func joined(marks []rateMark, n int) []rateMark {
	var out []rateMark
	for i := 0; i < len(marks); i += n {
		part := marks[i:min(i+n, len(marks))]
		x := part[len(part)-1]
		for _, o := range part[:len(part)-1] {
			x.read += o.read
			x.sent += o.sent
			x.demanded += o.demanded
			x.ratio += o.ratio
			x.txq += o.txq
			for k := range x.tokens {
				x.tokens[k] += o.tokens[k]
				x.inside[k] += o.inside[k]
				x.waiting[k] += o.waiting[k]
			}
		}
		c := float64(len(part))
		x.demanded, x.ratio, x.txq = x.demanded/c, x.ratio/c, x.txq/c
		for k := range x.tokens {
			x.tokens[k], x.inside[k], x.waiting[k] = x.tokens[k]/c, x.inside[k]/c, x.waiting[k]/c
		}
		out = append(out, x)
	}
	return out
}

// fill fills in the controllers' statistics after the warm-up.
func (m *rateMeter) fill(r *result.Result) {
	from := units.Seconds(r.WarmUp.UntilS)
	demanded, ratio, predictions, n := 0.0, 0.0, uint64(0), 0
	for i := range m.marks {
		k := &m.marks[i]
		if k.at <= from {
			predictions = k.predictions
			continue
		}
		demanded += k.demanded
		ratio += k.ratio
		n++
	}
	if n == 0 {
		return
	}
	r.Set("rate.demanded", 8*demanded/float64(n))
	r.Set("rate.weight_ratio", ratio/float64(n))
	r.Set("rate.predictions", float64(m.marks[len(m.marks)-1].predictions-predictions))
	m.idle(r)
	m.delays(r, from)
	shown, width := m.marks, m.width
	if k := (len(shown) + rateShown - 1) / rateShown; k > 1 {
		shown, width = joined(shown, k), width*units.Duration(k)
	}
	series := func(name string, of func(*rateMark) float64) {
		v := make([]float64, len(shown))
		for i := range shown {
			v[i] = of(&shown[i])
		}
		r.SetSeries(name, width, v)
	}
	rates := func(name string, of func(*rateMark) int64) {
		v := make([]float64, len(shown))
		from := sim.Time(0)
		for i := range shown {
			if took := shown[i].at - from; took > 0 { // the last slice is shorter than the others
				v[i] = 8 * float64(of(&shown[i])) / took.Seconds()
			}
			from = shown[i].at
		}
		r.SetSeries(name, width, v)
	}
	series("rate.demanded", func(k *rateMark) float64 { return 8 * k.demanded })
	rates("rate.read", func(k *rateMark) int64 { return k.read })
	rates("rate.received", func(k *rateMark) int64 { return k.sent })
	series("rate.weight_ratio", func(k *rateMark) float64 { return k.ratio })
	series("rate.txq", func(k *rateMark) float64 { return k.txq })
	for i, name := range []string{"read", "write"} {
		series("rate.tokens."+name, func(k *rateMark) float64 { return k.tokens[i] })
		series("rate.inside."+name, func(k *rateMark) float64 { return k.inside[i] })
		series("rate.waiting."+name, func(k *rateMark) float64 { return k.waiting[i] })
	}
}

// idle warns of controllers that had nothing to decide, whose results say nothing about them, and how much more load
// would change that.
func (m *rateMeter) idle(r *result.Result) {
	for t := range int32(m.y.sys.Targets()) {
		st, queues := m.y.sys.Steering(t)
		// Controllers whose answers overtake also limit the data that is handed to the network.
		if slices.ContainsFunc(queues, (*ratecontrol.Queues).Acted) || st.Overtake && m.y.sys.Counters.HeldAtTXQ > 0 {
			return
		}
	}
	const idle = "rate_control limited nothing: no command waited in a target, so there was nothing to divide"
	const full = 0.9
	used, ok := r.Metric("fabric.utilisation.max")
	switch {
	case m.y.sys.Counters.HeldAtTarget > 0:
		r.Warn("rate_control limited nothing: reads and writes never waited for one drive at the same time")
	case !ok || !(used.Value > 0):
		r.Warn("%s", idle)
	case used.Value >= full:
		r.Warn("%s, although the busiest link was used %.0f %%: commands wait elsewhere; raise nvmf.queue_depth", idle,
			100*used.Value)
	default:
		r.Warn("%s. The busiest link was used %.2g %%; requests %.2g times as fast would fill it (a trace's scale: %.2g)",
			idle, 100*used.Value, 1/used.Value, used.Value)
	}
}

// settled is the number of slices of a millisecond within the tolerance that ends a control delay.
const settled = 5

// delays fills in the controllers' response times to the given demands.
func (m *rateMeter) delays(r *result.Result, from units.Duration) {
	if m.s.RateControl == nil || len(m.s.RateControl.Demands) == 0 || m.width != rateSlice {
		return
	}
	var read, received delay
	list := m.s.RateControl.Demands
	for i := range list {
		end := len(m.marks)
		if i+1 < len(list) {
			end = min(end, int(list[i+1].At/rateSlice))
		}
		begin := int(list[i].At / rateSlice)
		if list[i].At < from || end-begin < 2*settled {
			continue
		}
		// For the drives' reads the goal is their settled rate, the mean over the second half, as no weights may attain
		// the demand.
		half, goal := (begin+end)/2, 0.0
		for _, k := range m.marks[half:end] {
			goal += float64(k.read)
		}
		read.add(m.marks[begin:end], goal/float64(end-half), func(k *rateMark) int64 { return k.read })
		goal = float64(float64(list[i].Rate) / 8 * rateSlice.Seconds() * float64(m.y.sys.Targets()))
		received.add(m.marks[begin:end], goal, func(k *rateMark) int64 { return k.sent })
	}
	if read.n == 0 {
		return
	}
	r.Set("rate.control_delay.mean", read.mean())
	r.Set("rate.control_delay.missed", float64(read.missed))
	r.Set("rate.control_delay.received.mean", received.mean())
	r.Set("rate.control_delay.received.missed", float64(received.missed))
}

// delay accumulates control delays for their mean.
type delay struct{ slices, n, missed int }

// add records the number of slices after which bytes stay within 10 % of a goal. If they never do, all slices count.
func (d *delay) add(marks []rateMark, goal float64, bytes func(*rateMark) int64) {
	d.n++
	stays := 0
	for i := range marks {
		if math.Abs(float64(bytes(&marks[i]))-goal) > 0.1*goal {
			stays = 0
		} else if stays++; stays == settled {
			d.slices += i + 1 - settled
			return
		}
	}
	d.missed++
	d.slices += len(marks)
}

func (d *delay) mean() float64 { return float64(d.slices) / float64(d.n) * rateSlice.Seconds() }

// rateWords defines the metrics of rate controllers.
func rateWords(l *result.Lexicon) {
	l.Metric("rate.demanded", "bit/s", "rate that the network demanded, mean over time, sum over targets")
	l.Metric("rate.weight_ratio", "ratio", "write weight over read weight, mean over time and drives")
	l.Metric("rate.predictions", "count", "predictions of a drive's throughput")
	l.Metric("rate.control_delay.mean", "s",
		"mean time from a given demand (rate_control.demands) until the drives' read rate settles: in slices of 1 ms, "+
			"within 10 % of its final value for 5 ms")
	l.Metric("rate.control_delay.missed", "count",
		"given demands whose read rate did not settle before the next one; they count with the whole time between")
	l.Metric("rate.control_delay.received.mean", "s",
		"the same until the read data rate at initiators stays within 10 % of the demand of all targets")
	l.Metric("rate.control_delay.received.missed", "count",
		"given demands whose rate at initiators did not settle before the next one; they count with the whole time "+
			"between")
	l.Series("rate.demanded", "bit/s", "rate that the network demanded, sum over targets")
	l.Series("rate.read", "bit/s", "rate at which drives read data")
	l.Series("rate.received", "bit/s", "read data acknowledged by initiators")
	l.Series("rate.weight_ratio", "ratio", "write weight over read weight, mean over drives")
	l.Series("rate.txq", "B", "fill of a target's transmit queue, mean over targets")
	for _, q := range []struct{ name, noun string }{{"read", "read"}, {"write", "write"}} {
		l.Series("rate.tokens."+q.name, "count", "tokens left of a drive's "+q.noun+" queue, mean over drives")
		l.Series("rate.inside."+q.name, "count",
			"commands of the "+q.noun+" queue in a drive, mean over drives")
		l.Series("rate.waiting."+q.name, "count",
			"commands waiting in a drive's "+q.noun+" queue, mean over drives")
	}
	l.Fewer("rate.control_delay.mean", "rate.control_delay.missed", "rate.control_delay.received.mean",
		"rate.control_delay.received.missed")
}
