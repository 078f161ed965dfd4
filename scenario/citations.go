package scenario

import (
	"slices"
	"strings"

	"farflash/ftl"
	"farflash/ssd"
	"farflash/workload/synth"
	"farflash/workload/trace"
)

// citation is a BibTeX entry and when it is due.
type citation struct {
	entry string
	due   func(*Scenario) bool
}

func always(*Scenario) bool { return true }

func anyLoad(f func(*Load) bool) func(*Scenario) bool {
	return func(s *Scenario) bool {
		return slices.ContainsFunc(s.Workload, func(l Load) bool { return f(&l) })
	}
}

func replays(formats ...trace.Format) func(*Scenario) bool {
	return anyLoad(func(l *Load) bool { return l.Trace != nil && slices.Contains(formats, l.Trace.Format) })
}

// citations lists what the models rest on.
var citations = []citation{
	{`@software{farflash,
  title = {Farflash: simulation of local and remote flash storage},
  author = {{The Farflash authors}},
  note = {The version is in result.json}
}`, always},
	{`@inproceedings{tavakkol2018mqsim,
  title = {{MQSim}: A Framework for Enabling Realistic Studies of Modern Multi-Queue {SSD} Devices},
  author = {Tavakkol, Arash and G{\'o}mez-Luna, Juan and Sadrosadati, Mohammad and Ghose, Saugata and Mutlu, Onur},
  booktitle = {16th USENIX Conference on File and Storage Technologies (FAST 18)},
  year = {2018},
  pages = {49--66}
}`, func(s *Scenario) bool { return s.SSD != nil }},
	{`@inproceedings{gupta2009dftl,
  title = {{DFTL}: A Flash Translation Layer Employing Demand-based Selective Caching of Page-level Address Mappings},
  author = {Gupta, Aayush and Kim, Youngjae and Urgaonkar, Bhuvan},
  booktitle = {14th International Conference on Architectural Support for Programming Languages and Operating Systems (ASPLOS)},
  year = {2009}
}`, func(s *Scenario) bool { return s.SSD != nil && !s.SSD.Mapping.Ideal }},
	{`@inproceedings{vanhoudt2013mean,
  title = {A Mean Field Model for a Class of Garbage Collection Algorithms in Flash-based Solid State Drives},
  author = {Van Houdt, Benny},
  booktitle = {ACM SIGMETRICS},
  year = {2013}
}`, func(s *Scenario) bool {
		return s.SSD != nil && (s.SSD.Collection.Victim == ftl.DChoices || s.SSD.Preconditioning.Fill == ssd.FillSteady)
	}},
	{`@inproceedings{desnoyers2012analytic,
  title = {Analytic Modeling of {SSD} Write Performance},
  author = {Desnoyers, Peter},
  booktitle = {5th Annual International Systems and Storage Conference (SYSTOR)},
  year = {2012}
}`, func(s *Scenario) bool {
		return s.SSD != nil && s.SSD.Preconditioning.Fill == ssd.FillSteady && s.SSD.Collection.Victim == ftl.Greedy
	}},
	{`@inproceedings{white2000comparison,
  title = {A Comparison of Five Steady-State Truncation Heuristics for Simulation},
  author = {White, K. Preston and Cobb, Michael J. and Spratt, Stephen C.},
  booktitle = {Winter Simulation Conference},
  year = {2000}
}`, func(s *Scenario) bool { return s.Measure.WarmUp.Auto || s.Measure.Until.Steady }},
	{`@article{heffes1986markov,
  title = {A {Markov} Modulated Characterization of Packetized Voice and Data Traffic and Related Statistical Multiplexer Performance},
  author = {Heffes, Harry and Lucantoni, David M.},
  journal = {IEEE Journal on Selected Areas in Communications},
  volume = {4},
  number = {6},
  year = {1986}
}`, anyLoad(func(l *Load) bool {
		if l.Synthetic == nil {
			return false
		}
		shapes := []synth.Shape{l.Synthetic.Interarrival.Shape}
		for _, f := range []*synth.Flow{l.Synthetic.Reads, l.Synthetic.Writes} {
			if f != nil {
				shapes = append(shapes, f.Size.Shape, f.Interarrival.Shape)
			}
		}
		return slices.ContainsFunc(shapes, func(s synth.Shape) bool { return s.Kind == synth.Modulated || s.ACF1 != 0 })
	})},
	{`@inproceedings{narayanan2008write,
  title = {Write Off-Loading: Practical Power Management for Enterprise Storage},
  author = {Narayanan, Dushyanth and Donnelly, Austin and Rowstron, Antony},
  booktitle = {6th USENIX Conference on File and Storage Technologies (FAST 08)},
  year = {2008}
}`, replays(trace.MSR)},
	{`@inproceedings{lee2017understanding,
  title = {Understanding Storage Traffic Characteristics on Enterprise Virtual Desktop Infrastructure},
  author = {Lee, Chunghan and Kumano, Tatsuo and Matsuki, Tatsuma and Endo, Hiroshi and Fukumoto, Naoto and Sugawara, Mariko},
  booktitle = {10th ACM International Systems and Storage Conference (SYSTOR)},
  year = {2017}
}`, replays(trace.Systor)},
	{`@inproceedings{zhang2020osca,
  title = {{OSCA}: An Online-Model Based Cache Allocation Scheme in Cloud Block Storage Systems},
  author = {Zhang, Yu and Huang, Ping and Zhou, Ke and Wang, Hua and Hu, Jianying and Ji, Yongguang and Cheng, Bin},
  booktitle = {2020 USENIX Annual Technical Conference (USENIX ATC 20)},
  year = {2020}
}`, replays(trace.Tencent)},
	{`@inproceedings{li2020alibaba,
  title = {An In-Depth Analysis of Cloud Block Storage Workloads in Large-Scale Production},
  author = {Li, Jinhong and Wang, Qiuping and Lee, Patrick P. C. and Shi, Chao},
  booktitle = {IEEE International Symposium on Workload Characterization (IISWC)},
  year = {2020}
}`, replays(trace.Alibaba)},
}

// Citations is the BibTeX of what the scenario's models, and the traces whose format
// it names, rest on.
func (s *Scenario) Citations() string {
	var entries []string
	for _, c := range citations {
		if c.due(s) {
			entries = append(entries, c.entry)
		}
	}
	return strings.Join(entries, "\n\n") + "\n"
}

// limits are what the models leave out and a reader should know.
func (s *Scenario) limits() []string {
	out := []string{
		"The host's software and interrupts take no time.",
		"The drive has no bit errors, read retries, retention loss or read disturb, and its controller's processor takes no time.",
		"The map's grain is a flash page: a smaller write takes a whole page and reads what it does not cover.",
	}
	if s.SSD.Compat == CompatMQSim {
		out = append(out, "compat: mqsim reproduces deviations of a simulator, which no drive has.")
	}
	return out
}
