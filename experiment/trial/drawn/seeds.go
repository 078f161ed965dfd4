package drawn

import "farflash/experiment/trial/trialtest"

// Seeds are small scenarios of every kind, from which draws start.
var Seeds = []string{
	trialtest.Mixed,
	"ssd: " + trialtest.TinyDrive +
		"\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 8KiB}, read_fraction: 50%, requests: 500}, " +
		"closed: 8}]\n",
	"ssd: mqsim-default\nworkload: [{mqsim: {requests: 300}, closed: 4}, {synthetic: {writes: {size: 16KiB, " +
		"interarrival: 40us}, requests: 200}}]\n",
	trialtest.SmallFabric,
	"fabric: {topology: {clos: {pods: 2, leaves: 2, tors: 2, hosts_per_pod: 4, spines: 2}}}\nflows: [{poisson: " +
		"{load: 40%, sizes: websearch, duration: 50us}}, {permutation: {size: 20KB}}]\n",
	trialtest.SmallSystem,
	"initiators: 2\ntargets: [{count: 2, ssds: 1, ssd: " + trialtest.TinyDrive +
		"}]\nroute: {target: {stripe: 16KiB}}\nworkload: [{synthetic: {reads: {size: 16KiB, interarrival: 20us}, " +
		"writes: {size: 8KiB, interarrival: 50us}, requests: 300}}]\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: tlc-enterprise}]\nprotocol: nvme-tcp\nfabric: {transport: " +
		"tcp}\nworkload: [{synthetic: {reads: {size: 32KiB, interarrival: 20us}, writes: {size: 64KiB, interarrival: " +
		"50us}, requests: 200}}]\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: tlc-enterprise}]\nprotocol: flows\ncoupling: {mode: " +
		"iterative}\nworkload: [{synthetic: {reads: {size: 32KiB, interarrival: 20us}, requests: 100}}]\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: tlc-enterprise}]\ncoupling: {mode: both, iterative: {full: " +
		"true}}\nworkload: [{synthetic: {writes: {size: 32KiB, interarrival: 30us}, requests: 60}}]\n",
	"object_cluster: {gateways: 6, targets: 18, chunk: 64KiB}\nmeasure: {until: 3ms}\n",
	"object_cluster: {gateways: 6, targets: 18, chunk: 16KiB, protocol: pull, reads: 30%}\nmeasure: {until: 3ms, " +
		"warm_up: 20%}\n",
	"object_cluster: {gateways: 6, targets: 18, chunk: 128KiB, protocol: chain, load: {share: 60%}}\nmeasure: " +
		"{until: 3ms}\n",
	"object_cluster: {gateways: 4, targets: 8, chunk: 64KiB, protocol: grants, core: packet}\nfabric: {topology: " +
		"{leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 6}}}\nmeasure: {until: 2ms}\n",
	"object_cluster: {protocol: storm}\nmeasure: {until: 100us}\n",
	"object_cluster: {protocol: tiering}\nmeasure: {until: 200ms}\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, " +
		"chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, cache: {capacity: 256KiB}, " +
		"preconditioning: {fill: steady, occupancy: 80%}," +
		" energy: {read: 1uJ, program: 1uJ, idle_watts: 1}, namespaces: [{streams: 2}, {channels: [0], cache: " +
		"write}]}\n" +
		"workload:\n- {synthetic: {reads: {size: {mean: 8KiB, scv: 1.5}, addresses: {pattern: zipf, theta: 0.9}}, " +
		"writes: {size: 16KiB}, interarrival: {mean: 50us, scv: 4, acf1: 0.1}, read_fraction: 50%, requests: 300}, " +
		"placement: 1, queue: {depth: 16, weight: 2, in_flight: 8}}\n" +
		"- {mqsim: {reads: 50%, addresses: hot-cold, hot_region: 10%, sizes: normal, size: 16KiB, size_deviation: " +
		"1KiB, requests: 200, bandwidth: 100MB/s}, namespace: 1}\n- {trace: {file: random.csv}, addresses: fold, " +
		"limit: 100}\n",
	"ssd: " + trialtest.TinyDrive +
		"\nworkload: [{trace: {file: random.csv, scale: 2, loop: 2, part: 50%}, addresses: fold}, {mqsim: {size: " +
		"4KiB, requests: 100}, closed: 2}]\n",
	"fabric: {topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 4}}, failures: [{a: leaf0, b: spine0, " +
		"at: 20us, until: 60us}]}\nflows: [{list: [{src: 0, dst: 5, size: 200KB}, {src: 5, dst: 1, size: 1KB, class: " +
		"4, start: 10us}]}, {incast: {fan: 3, size: 10KB}}]\n",
	"fabric: {topology: {dragonfly: {groups: 3, routers: 2, hosts_per_router: 2, global_links: 1}}}\nflows: " +
		"[{permutation: {size: 30KB}, class: 2}]\n",
	"fabric: {topology: {fat_tree: {k: 4}}, congestion_control: hpcc, parts: 2}\nflows: [{all_to_all: {size: 2KB}}]\n",
	"fabric: {topology: {star: {hosts: 2}}, failures: [{a: h0, b: s0, at: 30us}]}\nflows: [{list: [{src: 0, dst: 1, " +
		"size: 1MB}]}]\nmeasure: {until: 2ms}\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 1, ssd: " + trialtest.TinyDrive +
		"}, {count: 1, ssds: 2, ssd: tlc-enterprise}]\nplace: {initiators: first, targets: last}\nfabric: {topology: " +
		"{leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 3}}, failures: [{a: leaf0, b: spine0, at: 100us, until: " +
		"300us}]}\n" +
		"workload: [{trace: random.csv, addresses: fold}]\nflows: [{incast: {fan: 2, size: 10KB}}]\nmeasure: {until: " +
		"20ms}\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: " + trialtest.TinyDrive + "}]\nplace: {initiator_nics: 2, " +
		"target_nics: 2}\nnvmf: {multipath: {paths: 2, policy: round-robin, ana: [{path: 0, at: 200us, state: " +
		"inaccessible}, {path: 0, at: 1ms, state: optimized}]}, host: {io_timeout: 1ms, reconnect_delay: 1ms, " +
		"rediscovery: 5ms, keep_alive: 1s}, keep_alive_timer: linux}\nfabric: {topology: {star: {hosts: 6}}, failures: " +
		"[{a: h4, b: s0, at: 100us, until: 3ms}]}\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, " +
		"interarrival: 20us, requests: 300}}]\n",
	"initiators: 1\ntargets: [{count: 1, ssds: 1}]\nssd: " + trialtest.TinyDrive +
		"\nnvmf: {txq: 4KiB, buffers: 3, in_capsule: 0B, receives: {shared: 2, rnr_timer: 10us}}\nfabric: {cnp: " +
		"{answers: none}}\nrate_control: {kind: none}\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: " +
		"8KiB}, requests: 100}, closed: 4}]\n",
	"ssd: " + trialtest.TinyDrive +
		"\nrate_control: {kind: static, weight_ratio: 3}\nworkload: [{synthetic: {reads: {size: 16KiB, interarrival: " +
		"20us}, writes: {size: 8KiB, interarrival: 20us}, requests: 600}}]\n",
	"object_cluster: {gateways: 5, targets: 12, group: 6, protocol: pull}\nworkload: [{trace: random.csv}]\nmeasure: " +
		"{until: 20ms}\n",
	"object_cluster: {gateways: 3, targets: 8, protocol: pull, group: 4, reads: 20%, code: {data: 2, parity: 1}, " +
		"failures: [{target: 1, at: 1ms, back: 8ms}], repair: {detect: 500us}, durability: {afr: 1%}}\nmeasure: " +
		"{until: 10ms}\n",
	"object_cluster: {gateways: 4, targets: 12, chunk: 64KiB, disk: {kinds: [{share: 50%, rate: 200MiB/s}]}, load: " +
		"{rate: 2000}}\nmeasure: {until: 3ms}\n",
	"object_cluster: {gateways: 2, targets: 6, chunk: 64KiB, protocol: chain, disk: {model: ssd}}\nssd: " +
		trialtest.TinyDrive + "\nmeasure: {until: 3ms}\n",
	"object_cluster: {protocol: ping-pong}\nmeasure: {until: 100us}\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, " +
		"chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, preconditioning: {fill: steady, occupancy: " +
		"80%}," +
		" reliability: {cycles: 3000, retention: 90d, retries: 2, refresh: {at: 80%, patrol: 100us}}, controller: " +
		"{processors: 2, command: 2us, completion: 1us}}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: 100us, read_fraction: " +
		"70%, requests: 400}}]\nmeasure: {anatomy: true}\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, " +
		"chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, energy: {idle_watts: 3, read: 10uJ, " +
		"program: 100uJ}, power_limit: {watts: 4, window: 1ms}," +
		" power_states: [{after: 1ms, entry: 500us, exit: 2ms, watts: 1}, {after: 2ms, exit: 5ms}]}\nworkload: " +
		"[{synthetic: {reads: {size: 4KiB}, requests: 50}, closed: 1, think: 1700us}]\n",
	"ssd: {preset: qlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, " +
		"chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%," +
		" slc_cache: {capacity: 24MiB, reserved: 1MiB, fold: idle, idle_after: 200us, when_full: wait}}\nworkload: " +
		"[{synthetic: {reads: {size: 4KiB}, writes: {size: 64KiB}, interarrival: 300us, requests: 300}}]\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 60, pages_per_block: 16, channels: 2, " +
		"chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 50%, preconditioning: {fill: steady, occupancy: " +
		"80%}, fdp: {handles: 3, isolation: persistently}," +
		" namespaces: [{handles: [0, 2]}, {handles: [2, 1]}]}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: 100us, read_fraction: " +
		"30%, requests: 400}, placement: 1}, {synthetic: {writes: {size: 8KiB}, requests: 300}, closed: 2, " +
		"namespace: 1, placement: 1}]\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 60, pages_per_block: 16, channels: 2, " +
		"chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 50%, preconditioning: {fill: steady}, fdp: " +
		"{handles: 2, groups: 2}}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: 100us, read_fraction: " +
		"30%, requests: 400}, group: 1}, {synthetic: {writes: {size: 8KiB}, requests: 300}, closed: 2, placement: 1}]\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, " +
		"chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, cache: {capacity: 1MiB}, preconditioning: " +
		"{fill: sequential, occupancy: 50%}," +
		" zones: {capacity: 1MiB, size: 1028KiB, max_open: 3, max_active: 8, max_append: 64KiB}, namespaces: [{}, " +
		"{conventional: true, cache: write}]}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: 100us, read_fraction: " +
		"30%, requests: 400}, zones: {append: true, at_once: 2}}, {synthetic: {writes: {size: 8KiB}, requests: 100}, " +
		"closed: 2, namespace: 1}," +
		" {synthetic: {writes: {size: 32KiB, addresses: {start: 5140KiB, space: 3084KiB}}, requests: 100}, closed: " +
		"4, zones: {append: false}}]\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: {preset: tlc-enterprise, reliability: {curve: given, fit: " +
		"{base: 0.012}, retries: 1, gain: 70%}}}]\nworkload: [{synthetic: {reads: {size: 32KiB, interarrival: 20us}, " +
		"requests: 200}}]\n",
	"initiators: 3\ntargets: [{count: 2, ssds: 1, ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, " +
		"pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, cache: " +
		"{capacity: 1MiB}, zones: {max_append: 64KiB}}}]\n" +
		"route: {target: {stripe: 2MiB}}\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 32KiB, " +
		"addresses: {space: 8MiB}}, read_fraction: 30%, requests: 400}, closed: 8, zones: {append: true, at_once: 2}}," +
		" {synthetic: {writes: {size: 16KiB, interarrival: 40us, addresses: {start: 8MiB, space: 8MiB}}, requests: " +
		"200}, zones: {append: false}}]\n",
	"ssd: tlc-enterprise\nhost_raid: {drives: 3, level: 5, chunk: 16KiB}\nworkload: [{queue: {depth: 8}, synthetic: " +
		"{reads: {size: 4KiB, interarrival: 20us}, writes: {size: 16KiB, interarrival: 60us}, requests: 200}}]\n",
	"ssd: " + trialtest.TinyDrive +
		"\nhost_raid: {drives: 4, level: 6, failed: [1], rebuild: 1GB/s}\nworkload: [{synthetic: {reads: {size: " +
		"8KiB}, requests: 100}, closed: 4}]\nmeasure: {until: 3ms}\n",
	"ssd: " + trialtest.TinyDrive + "\nhost_raid: {drives: 2, level: 1}\nworkload: [{fio: j.fio}]\n",
	"initiators: 1\ntargets: [{count: 2, ssds: 2, ssd: " + trialtest.TinyDrive +
		"}]\nhost_raid: {level: 5}\nworkload: [{synthetic: {writes: {size: 16KiB}, requests: 60}, closed: 2}]\n",
	"fabric: {topology: {links: [{a: h0, b: s0, rate: 10Gbps}, {a: h1, b: s0}, {a: h2, b: s0, delay: 2us, loss: " +
		"1%}]}, switch_latency: 300ns}\nflows: [{list: [{src: 0, dst: 2, size: 30KB, name: first}, {src: 2, dst: 1, " +
		"size: 10KB, after: [first]}]}]\n",
	"fabric: {topology: {file: net.txt}, compat: hpcc, congestion_control: {algorithm: hpcc}}\nflows: [{file: " +
		"flows.txt}]\n",
	"fabric: {topology: {dumbbell: {left: 2, right: 2}}, transport: tcp, congestion_control: {algorithm: tcp, tcp: " +
		"{growth: newreno}}, recovery: {kind: sack}, pfc: {enabled: false}, loss: 0.1%}\nflows: [{list: [{src: 0, " +
		"dst: 2, size: 100KB}, {src: 1, dst: 3, size: 100KB}]}]\nmeasure: {until: 50ms}\n",
	"fabric: {topology: {fat_tree: {k: 4}}, payload: 4KiB, congestion_control: ndp, trimming: {enabled: true, queue: " +
		"40KB}, pfc: {enabled: false}, recovery: {kind: selective-repeat}, load_balancing: {choice: " +
		"round-robin}}\nflows: [{incast: {fan: 6, size: 50KB, rounds: 2, every: 100us}}]\n",
	"fabric: {topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 3}, planes: 2}, congestion_control: " +
		"{algorithm: nscc}, acks: {every: 2}, queue_pairs: {per_peer: 2}, watchdog: {after: 1ms}}\nflows: " +
		"[{collective: {operation: all-reduce, size: 60KB, rounds: 2}}]\n",
	"fabric: {topology: {star: {hosts: 6}}, congestion_control: swift, ecn: {ports: [{rate: 40Gbps, kmin: 10KB, " +
		"kmax: 40KB, pmax: 10%}]}, telemetry: {size: 8B}}\nflows: [{poisson: {load: 30%, sizes: {points: [{size: " +
		"1KB, share: 50%}, {size: 10KB, share: 100%}]}, duration: 100us}}, {incast: {fan: 3, size: 20KB, target: 1}}]\n",
	"fabric: {topology: {star: {hosts: 4}}, congestion_control: {algorithm: timely}, cnp: {interval: 20us}, " +
		"round_trip: {longest: true}}\nflows: [{all_to_all: {size: 10KB, hosts: [0, 1, 3]}}]\n",
	"initiators: 2\ntargets: [{count: 2, ssds: 1, ssd: " + trialtest.TinyDrive +
		"}]\nrate_control: {kind: pace, demands: [{at: 0s, rate: 5Gbps}, {at: 1ms, rate: 10Gbps}]}\nworkload: " +
		"[{synthetic: {reads: {size: 16KiB, interarrival: 20us}, writes: {size: 16KiB, interarrival: 30us}, " +
		"requests: 200}}]\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, " +
		"chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%}\nworkload: [{trace: {file: columns.csv, " +
		"format: csv, columns: {time: t, op: kind, offset: at, size: bytes}, unit: {time: 1us, offset: 512B, size: " +
		"1B}}, addresses: fold}]\n",
	"ssd: " + trialtest.TinyDrive +
		"\nworkload: [{fio: {file: j.fio, job: b}, tenant: x}, {synthetic: {reads: {size: 4KiB}, requests: 60}, " +
		"closed: 2, think: {time: 10us, every: 2}, flush: {every: 5}, copies: {count: 2, stride: 1MiB}, tenant: " +
		"y}]\nmeasure: {alone: true}\n",
	"object_cluster: {gateways: 4, targets: 10, chunk: 64KiB, replicas: 3, placement: copysets, sizes: [{chunk: " +
		"16KiB, share: 50%}, {chunk: 64KiB, share: 50%}], update: {share: 10%, size: 4KiB}, processor: {message: " +
		"1us}, link: {rate: 10Gbps}, control: {share: 10%}, load: {rate: 3000}}\nmeasure: {until: 3ms}\n",
	"object_cluster: {protocol: tiering, tier: {ssd: {window: 16}, hdd: {window: 4}}}\nmeasure: {until: 100ms}\n",
	"object_cluster: {protocol: storm, traffic: {both: true, hops: 2, jitter: 1us}}\nmeasure: {until: 100us}\n",
}

// files are the inputs of scenarios, by name.
var files = map[string]string{
	"random.csv": `128166372000012750,usr,0,Read,2142208,65536,100
128166372000029960,usr,0,Write,3903488,4096,100
128166372000032270,usr,1,Write,3117056,8192,100
128166372000043400,usr,0,Read,851968,16384,100
128166372000051750,usr,1,Write,2342912,4096,100
128166372000055010,usr,1,Read,6389760,512,100
128166372000057600,usr,0,Write,1105920,512,100
`,
	"columns.csv": `t,kind,at,bytes
10,R,8,4096
25,W,64,8192
31,R,8,512
90,W,4000,65536
`,
	"j.fio": `[global]
bs=4k
size=1m
number_ios=100
[a]
rw=randread
iodepth=4
[b]
rw=randwrite
bs=8k
iodepth=2
`,
	"net.txt": `5 1 4
4
0 4 25Gbps 1000ns 0
1 4 25Gbps 1000ns 0
2 4 25Gbps 1000ns 0
3 4 25Gbps 1000ns 0
`,
	"flows.txt": `3
0 1 3 100 20000 0.000001
2 1 3 100 30000 0.000002
3 0 3 100 1000 0.00001
`,
}
