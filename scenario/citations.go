package scenario

import (
	"fmt"
	"slices"
	"strings"

	"farflash/internal/spelling"
	"farflash/model/cluster"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/model/nvmf"
	"farflash/model/ssd"
	"farflash/policy/ftl"
	"farflash/scenario/shape"
	"farflash/workload/synth"
	"farflash/workload/trace"
)

// citation is a BibTeX entry and the condition under which it applies.
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

func congestion(scheme cc.Scheme) func(*Scenario) bool {
	return func(s *Scenario) bool { return s.Fabric != nil && s.Fabric.CongestionControl.Algorithm == scheme }
}

// grows selects scenarios with a given TCP window growth.
func grows(g cc.Growth) func(*Scenario) bool {
	return func(s *Scenario) bool {
		return congestion(cc.SchemeTCP)(s) && s.Fabric.CongestionControl.TCP.Growth == g
	}
}

// puts selects scenarios with a given put protocol of an object cluster.
func puts(scheme cluster.Scheme) func(*Scenario) bool {
	return func(s *Scenario) bool {
		if s.ObjectCluster == nil {
			return false
		}
		x, ok := s.ObjectCluster.Protocol.put()
		return ok && x == scheme
	}
}

// placed selects scenarios with a given object placement.
func placed(p cluster.Placement) func(*Scenario) bool {
	return func(s *Scenario) bool { return s.ObjectCluster != nil && s.ObjectCluster.Placement == p }
}

// citations lists the sources of the models.
var citations = []citation{
	{`@software{farflash,
  title = {Farflash: flash storage across a network, simulated, sized and served},
  author = {{The Farflash authors}},
  note = {The version is in result.json}
}`, always},
	{`@inproceedings{tavakkol2018mqsim,
  title = {{MQSim}: A Framework for Enabling Realistic Studies of Modern Multi-Queue {SSD} Devices},
  author = {Tavakkol, Arash and G{\'o}mez-Luna, Juan and Sadrosadati, Mohammad and Ghose, Saugata and Mutlu, Onur},
  booktitle = {16th USENIX Conference on File and Storage Technologies (FAST 18)},
  year = {2018},
  pages = {49--66}
}`, func(s *Scenario) bool { return s.HasDrives() }},
	{`@inproceedings{gupta2009dftl,
  title = {{DFTL}: A Flash Translation Layer Employing Demand-based Selective Caching of Page-level Address Mappings},
  author = {Gupta, Aayush and Kim, Youngjae and Urgaonkar, Bhuvan},
  booktitle = {14th International Conference on Architectural Support for Programming Languages and Operating Systems (ASPLOS)},
  year = {2009}
}`, func(s *Scenario) bool { return s.HasDrives() && !s.DriveOf(0).Mapping.Ideal }},
	{`@inproceedings{vanhoudt2013mean,
  title = {A Mean Field Model for a Class of Garbage Collection Algorithms in Flash-based Solid State Drives},
  author = {Van Houdt, Benny},
  booktitle = {ACM SIGMETRICS},
  year = {2013}
}`, func(s *Scenario) bool {
		return s.HasDrives() &&
			(s.DriveOf(0).Collection.Victim == ftl.DChoices || s.DriveOf(0).Preconditioning.Fill == ssd.FillSteady)
	}},
	{`@inproceedings{desnoyers2012analytic,
  title = {Analytic Modeling of {SSD} Write Performance},
  author = {Desnoyers, Peter},
  booktitle = {5th Annual International Systems and Storage Conference (SYSTOR)},
  year = {2012}
}`, func(s *Scenario) bool {
		return s.HasDrives() && s.DriveOf(0).Preconditioning.Fill == ssd.FillSteady &&
			s.DriveOf(0).Collection.Victim == ftl.Greedy
	}},
	{`@inproceedings{zhu2015dcqcn,
  title = {Congestion Control for Large-Scale {RDMA} Deployments},
  author = {Zhu, Yibo and Eran, Haggai and Firestone, Daniel and Guo, Chuanxiong and Lipshteyn, Marina and Liron, Yehonatan and Padhye, Jitendra and Raindel, Shachar and Yahia, Mohamad Haj and Zhang, Ming},
  booktitle = {ACM SIGCOMM},
  year = {2015}
}`, congestion(cc.SchemeDCQCN)},
	{`@inproceedings{li2019hpcc,
  title = {{HPCC}: High Precision Congestion Control},
  author = {Li, Yuliang and Miao, Rui and Liu, Hongqiang Harry and Zhuang, Yan and Feng, Fei and Tang, Lingbo and Cao, Zheng and Zhang, Ming and Kelly, Frank and Alizadeh, Mohammad and Yu, Minlan},
  booktitle = {ACM SIGCOMM},
  year = {2019}
}`, func(s *Scenario) bool { return s.Fabric != nil }},
	{`@inproceedings{zhu2016ecn,
  title = {{ECN} or Delay: Lessons Learnt from Analysis of {DCQCN} and {TIMELY}},
  author = {Zhu, Yibo and Ghobadi, Monia and Misra, Vishal and Padhye, Jitendra},
  booktitle = {12th International Conference on emerging Networking EXperiments and Technologies (CoNEXT)},
  year = {2016}
}`, func(s *Scenario) bool { return s.Fabric != nil && s.Fabric.Compat == FabricCompatNS3RDMA }},
	{`@inproceedings{benbasat2020pint,
  title = {{PINT}: Probabilistic In-band Network Telemetry},
  author = {Ben Basat, Ran and Ramanathan, Sivaramakrishnan and Li, Yuliang and Antichi, Gianni and Yu, Minlan and Mitzenmacher, Michael},
  booktitle = {ACM SIGCOMM},
  year = {2020}
}`, congestion(cc.SchemeHPCCPINT)},
	{`@inproceedings{alizadeh2010dctcp,
  title = {Data Center {TCP} ({DCTCP})},
  author = {Alizadeh, Mohammad and Greenberg, Albert and Maltz, David A. and Padhye, Jitendra and Patel, Parveen and Prabhakar, Balaji and Sengupta, Sudipta and Sridharan, Murari},
  booktitle = {ACM SIGCOMM},
  year = {2010}
}`, func(s *Scenario) bool {
		return congestion(cc.SchemeDCTCP)(s) || grows(cc.GrowthDCTCP)(s) || puts(cluster.DCTCP)(s)
	}},
	{`@inproceedings{mittal2015timely,
  title = {{TIMELY}: {RTT}-based Congestion Control for the Datacenter},
  author = {Mittal, Radhika and Lam, Vinh The and Dukkipati, Nandita and Blem, Emily and Wassel, Hassan and Ghobadi, Monia and Vahdat, Amin and Wang, Yaogong and Wetherall, David and Zats, David},
  booktitle = {ACM SIGCOMM},
  year = {2015}
}`, congestion(cc.SchemeTimely)},
	{`@inproceedings{kumar2020swift,
  title = {Swift: Delay is Simple and Effective for Congestion Control in the Datacenter},
  author = {Kumar, Gautam and Dukkipati, Nandita and Jang, Keon and Wassel, Hassan M. G. and Wu, Xian and Montazeri, Behnam and Wang, Yaogong and Springborn, Kevin and Alfeld, Christopher and Ryan, Michael and Wetherall, David and Vahdat, Amin},
  booktitle = {ACM SIGCOMM},
  year = {2020}
}`, congestion(cc.SchemeSwift)},
	{`@inproceedings{mittal2018irn,
  title = {Revisiting Network Support for {RDMA}},
  author = {Mittal, Radhika and Shpiner, Alexander and Panda, Aurojit and Zahavi, Eitan and Krishnamurthy, Arvind and Ratnasamy, Sylvia and Shenker, Scott},
  booktitle = {ACM SIGCOMM},
  year = {2018}
}`, func(s *Scenario) bool { return s.Fabric != nil && s.Fabric.Recovery.Kind == fabric.SelectiveRepeat }},
	{`@techreport{rfc9438,
  title = {{CUBIC} for Fast and Long-Distance Networks},
  author = {Xu, Lisong and Ha, Sangtae and Rhee, Injong and Goel, Vidhi and Eggert, Lars},
  institution = {RFC Editor},
  number = {RFC 9438},
  year = {2023}
}`, grows(cc.GrowthCubic)},
	{`@techreport{rfc6582,
  title = {The {NewReno} Modification to {TCP}'s Fast Recovery Algorithm},
  author = {Henderson, Tom and Floyd, Sally and Gurtov, Andrei and Nishida, Yoshifumi},
  institution = {RFC Editor},
  number = {RFC 6582},
  year = {2012}
}`, grows(cc.GrowthNewReno)},
	{`@techreport{nvme2019fabrics,
  title = {{NVM} Express over Fabrics, revision 1.1},
  institution = {NVM Express, Inc.},
  year = {2019}
}`, func(s *Scenario) bool { return len(s.Targets) > 0 && s.Protocol.Capsules() }},
	{`@techreport{nvme2021tcp,
  title = {{NVM} Express {TCP} Transport Specification, revision 1.0},
  institution = {NVM Express, Inc.},
  year = {2021}
}`, func(s *Scenario) bool { return len(s.Targets) > 0 && s.Protocol == nvmf.NVMeTCP }},
	{`@techreport{spdk2024nvmeof,
  title = {{SPDK} {NVMe-oF} {RDMA} Performance Report, release 24.05},
  institution = {Storage Performance Development Kit},
  year = {2024},
  note = {the software's time for a command}
}`, func(s *Scenario) bool { return len(s.Targets) > 0 && s.Protocol.Capsules() }},
	{`@inproceedings{jia2022snis,
  title = {{SNIS}: Storage-Network Iterative Simulation for Disaggregated Storage Systems},
  author = {Jia, Danlin and Li, Tengpeng and Zhang, Xiaoqian and Wang, Li and Bayati, Mahsa and Lee, Ron and Sheng, Bo and Mi, Ningfang},
  booktitle = {IEEE International Performance, Computing, and Communications Conference (IPCCC)},
  year = {2022}
}`, func(s *Scenario) bool { return len(s.Targets) > 0 && s.Coupling.Mode != Coupled }},
	{`@misc{jiasrc,
  title = {{SRC}: Mitigate {I/O} Throughput Degradation in Network Congestion Control of Disaggregated Storage Systems},
  author = {Jia, Danlin and Xie, Yiming and Wang, Li and Zhang, Xiaoqian and Yang, Allen and Yao, Xuebin and Bayati, Mahsa and Subedi, Pradeep and Sheng, Bo and Mi, Ningfang}
}`, func(s *Scenario) bool { return s.Controlled() }},
	{`@article{anderson1965iterative,
  title = {Iterative Procedures for Nonlinear Integral Equations},
  author = {Anderson, Donald G.},
  journal = {Journal of the ACM},
  volume = {12},
  number = {4},
  year = {1965}
}`, func(s *Scenario) bool {
		return len(s.Targets) > 0 && s.Coupling.Mode != Coupled && s.Coupling.Iterative.Acceleration == cosim.Anderson
	}},
	{`@article{irons1969aitken,
  title = {A Version of the {Aitken} Accelerator for Computer Iteration},
  author = {Irons, Bruce M. and Tuck, Robert C.},
  journal = {International Journal for Numerical Methods in Engineering},
  volume = {1},
  number = {3},
  year = {1969}
}`, func(s *Scenario) bool {
		return len(s.Targets) > 0 && s.Coupling.Mode != Coupled && s.Coupling.Iterative.Acceleration == cosim.Aitken
	}},
	{`@techreport{aizman2016replicast,
  title = {Scalable Object Storage with Resource Reservations and Dynamic Load Balancing},
  author = {Aizman, Alex and Bestler, Caitlin},
  institution = {Nexenta Systems, Inc.},
  year = {2016}
}`, func(s *Scenario) bool { return s.ObjectCluster != nil }},
	{`@software{surge,
  title = {{SURGE}: a simulator of clusters' protocols},
  author = {Aizman, Alex},
  note = {hqr/surge on GitHub, builds d92018f and 9872498}
}`, func(s *Scenario) bool { return s.ObjectCluster != nil && s.ObjectCluster.Compat != cluster.CompatNone }},
	{`@inproceedings{vanrenesse2004chain,
  title = {Chain Replication for Supporting High Throughput and Availability},
  author = {van Renesse, Robbert and Schneider, Fred B.},
  booktitle = {6th Symposium on Operating Systems Design and Implementation (OSDI)},
  year = {2004}
}`, puts(cluster.Chain)},
	{`@inproceedings{montazeri2018homa,
  title = {Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network Priorities},
  author = {Montazeri, Behnam and Li, Yilong and Alizadeh, Mohammad and Ousterhout, John},
  booktitle = {ACM SIGCOMM},
  year = {2018}
}`, puts(cluster.Grants)},
	{`@inproceedings{karger1997consistent,
  title = {Consistent Hashing and Random Trees: Distributed Caching Protocols for Relieving Hot Spots on the World Wide Web},
  author = {Karger, David and Lehman, Eric and Leighton, Tom and Panigrahy, Rina and Levine, Matthew and Lewin, Daniel},
  booktitle = {29th Annual ACM Symposium on Theory of Computing (STOC)},
  year = {1997}
}`, placed(cluster.PlaceRing)},
	{`@article{thaler1998names,
  title = {Using Name-Based Mappings to Increase Hit Rates},
  author = {Thaler, David G. and Ravishankar, Chinya V.},
  journal = {IEEE/ACM Transactions on Networking},
  volume = {6},
  number = {1},
  year = {1998}
}`, placed(cluster.PlaceHRW)},
	{`@misc{lamping2014jump,
  title = {A Fast, Minimal Memory, Consistent Hash Algorithm},
  author = {Lamping, John and Veach, Eric},
  note = {arXiv:1406.2294},
  year = {2014}
}`, placed(cluster.PlaceJump)},
	{`@inproceedings{eisenbud2016maglev,
  title = {Maglev: A Fast and Reliable Software Network Load Balancer},
  author = {Eisenbud, Daniel E. and Yi, Cheng and Contavalli, Carlo and Smith, Cody and Kononov, Roman and Mann-Hielscher, Eric and Cilingiroglu, Ardas and Cheyney, Bin and Shang, Wentao and Hosein, Jinnah Dylan},
  booktitle = {13th USENIX Symposium on Networked Systems Design and Implementation (NSDI)},
  year = {2016}
}`, placed(cluster.PlaceMaglev)},
	{`@inproceedings{weil2006crush,
  title = {{CRUSH}: Controlled, Scalable, Decentralized Placement of Replicated Data},
  author = {Weil, Sage A. and Brandt, Scott A. and Miller, Ethan L. and Maltzahn, Carlos},
  booktitle = {ACM/IEEE Conference on Supercomputing (SC)},
  year = {2006}
}`, placed(cluster.PlaceStraw2)},
	{`@inproceedings{mirrokni2018bounded,
  title = {Consistent Hashing with Bounded Loads},
  author = {Mirrokni, Vahab and Thorup, Mikkel and Zadimoghaddam, Morteza},
  booktitle = {29th Annual ACM-SIAM Symposium on Discrete Algorithms (SODA)},
  year = {2018}
}`, placed(cluster.PlaceBounded)},
	{`@inproceedings{cidon2013copysets,
  title = {Copysets: Reducing the Frequency of Data Loss in Cloud Storage},
  author = {Cidon, Asaf and Rumble, Stephen M. and Stutsman, Ryan and Katti, Sachin and Ousterhout, John and Rosenblum, Mendel},
  booktitle = {USENIX Annual Technical Conference (USENIX ATC)},
  year = {2013}
}`, placed(cluster.PlaceCopysets)},
	{`@inproceedings{white2000comparison,
  title = {A Comparison of Five Steady-State Truncation Heuristics for Simulation},
  author = {White, K. Preston and Cobb, Michael J. and Spratt, Stephen C.},
  booktitle = {Winter Simulation Conference},
  year = {2000}
}`, func(s *Scenario) bool { return s.Measure.WarmUp.Auto || s.Measure.Until.Steady }},
	{`@article{tafazzoli2011skart,
  title = {Skart: A Skewness- and Autoregression-adjusted Batch-means Procedure for Simulation Analysis},
  author = {Tafazzoli, Ali and Wilson, James R. and Lada, Emily K. and Steiger, Natalie M.},
  journal = {INFORMS Journal on Computing},
  volume = {23},
  number = {2},
  year = {2011}
}`, func(s *Scenario) bool { return s.Measure.Until.Steady }},
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

// key returns the entry's citation key.
func (c *citation) key() string {
	_, rest, _ := strings.Cut(c.entry, "{")
	name, _, _ := strings.Cut(rest, ",")
	return name
}

// checkCite reports unknown citation keys.
func (s *Scenario) checkCite(d *shape.Decoder) {
	var known []string
	for i := range citations {
		known = append(known, citations[i].key())
	}
	for i, name := range s.Cite {
		if slices.Contains(known, name) {
			continue
		}
		path := fmt.Sprintf("cite[%d]", i)
		if like := spelling.Nearest(name, known); like != "" {
			d.Fail(s.Where(path), "%s: there is no entry %q; did you mean %q?", path, name, like)
			continue
		}
		d.Fail(s.Where(path), "%s: there is no entry %q; there are %s", path, name, strings.Join(known, ", "))
	}
}

// Citations returns the BibTeX entries of its models, traces and cited papers.
func (s *Scenario) Citations() string {
	var entries []string
	for i := range citations {
		if c := &citations[i]; c.due(s) || slices.Contains(s.Cite, c.key()) {
			entries = append(entries, c.entry)
		}
	}
	return strings.Join(entries, "\n\n") + "\n"
}
