// Package docs is the documentation. Its tests run every command that a page or the README shows, check every link, and
// compare the generated pages with their sources.
//
// The tables, data and pictures of docs/validation that are computed by tests are written by
//
//	go generate ./docs                    the quick ones
//	FARFLASH_LONG=1 go generate ./docs    all of them, in an hour or so
//
// each table with its seeds, the date and the commit. The same tests compare the tables with fresh results, the quick
// ones on every run.
package docs

//go:generate go test farflash/scenario/convert -run ^TestMQSim(Cases|Described)$ -count=1 -update
//go:generate go test farflash/study/reproduce -run ^TestVerdicts$ -count=1 -timeout 0 -update
//go:generate go test farflash/study/reproduce -run ^TestDocumented -count=1 -timeout 0 -update
//go:generate go test farflash/docs/tables -run ^Test(Tables|Prediction)$ -count=1 -timeout 0 -update
//go:generate go test farflash/model/cluster -run ^Test(ProcessorTable|MemoryTable|RebuildTable)$ -count=1 -timeout 0 -update
//go:generate go test farflash/policy/ftl/waf -run ^TestAcceptance$ -count=1 -timeout 0 -update
//go:generate go test farflash/flash/ctl/waf -run ^Test(ControllerWAF|VirtualClock)$ -count=1 -timeout 0 -update
//go:generate go test farflash/numeric/stats -run ^TestSettlingPromise$ -count=1 -timeout 0 -update
//go:generate go test farflash/study -run ^Test(NothingButSeeds|PlantedSimulated)$ -count=1 -timeout 0 -update
//go:generate go test farflash/experiment/drive -run ^Test(SteadyPromise|BusyDrive|SaturatedDrive)$ -count=1 -timeout 0 -update
//go:generate go test farflash/workload/characterise -run ^TestPage$ -count=1 -update
//go:generate go test farflash/model/fabric -run ^Test(NS3Answers|TCPShares)$ -count=1 -update
//go:generate go test farflash/experiment/network -run ^TestNS3(Cases|Reroute)$ -count=1 -timeout 0 -update
//go:generate go test farflash/model/nvmf -run ^Test(TXQHoldsWrites|BesideWrites)$ -count=1 -update
//go:generate go test farflash/experiment/system -run ^Test(Alone|IncastOfReads)$ -count=1 -update
//go:generate go test farflash/internal/benchratio -run ^TestPage$ -count=1 -update
