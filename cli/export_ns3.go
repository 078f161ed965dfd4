package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"farflash/cli/verb"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/result/columnar"
	"farflash/scenario/convert"
	"farflash/scenario/peer"
)

// servicePort is the destination port of the flows in HPCC's ns-3.
const servicePort = 100

// exportNS3 writes fct.txt and pfc.txt in the format of HPCC's ns-3 to a new folder.
func (p *program) exportNS3(run *result.Run, dir string) error {
	if dir == "" || dir == "-" {
		return verb.Usagef("--format=ns3 writes fct.txt and pfc.txt; name a new folder with -o DIR")
	}
	terms, err := convert.NewNS3Terms(run.Scenario)
	if err != nil {
		return verb.BadInput(fmt.Errorf("%s: %w", filepath.Join(run.Path, result.ScenarioFile), err))
	}
	flows, err := ns3Flows(run, terms)
	if err != nil {
		return err
	}
	pauses, err := ns3Pauses(run, terms.From)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return verb.Usagef("%s already exists and is not overwritten; name another", dir)
		}
		return verb.BadInput(err)
	}
	var fct, pfc bytes.Buffer
	return verb.Failed(errors.Join(
		peer.WriteNS3Completions(&fct, flows), writeNew(filepath.Join(dir, "fct.txt"), fct.Bytes()),
		peer.WriteNS3Pauses(&pfc, pauses), writeNew(filepath.Join(dir, "pfc.txt"), pfc.Bytes())))
}

// ns3Flows returns the completed flows in order of completion.
func ns3Flows(run *result.Run, terms *convert.NS3Terms) ([]peer.NS3Completion, error) {
	var out []peer.NS3Completion
	err := readTable(run, result.FlowsFile, "measure.flows", func(r io.ReaderAt, size int64) error {
		return columnar.ReadFlows(r, size, func(f columnar.Flow) error {
			if f.FCT != columnar.Absent {
				out = append(out, peer.NS3Completion{Src: int(f.Src), Dst: int(f.Dst), SrcPort: f.SrcPort,
					DstPort: servicePort,
					Bytes:   units.Bytes(f.Size), Start: terms.From + f.Start, FCT: f.FCT,
					Ideal: terms.Ideal(f.Src, f.Dst, units.Bytes(f.Size))})
			}
			return nil
		})
	})
	slices.SortStableFunc(out, func(a, b peer.NS3Completion) int { return cmp.Compare(a.Start+a.FCT, b.Start+b.FCT) })
	return out, err
}

func ns3Pauses(run *result.Run, from units.Duration) ([]peer.NS3Pause, error) {
	var out []peer.NS3Pause
	err := readTable(run, result.PausesFile, "measure.pauses", func(r io.ReaderAt, size int64) error {
		return columnar.ReadPauses(r, size, func(x columnar.Pause) error {
			out = append(out, peer.NS3Pause{Time: from + x.Time, Node: int(x.Node), Switch: x.Switch,
				Port: int(x.Port), Pause: !x.Resume})
			return nil
		})
	})
	return out, err
}

// readTable opens one of a run's Parquet files; key is the scenario key that makes runs write it.
func readTable(run *result.Run, name, key string, read func(io.ReaderAt, int64) error) error {
	path := filepath.Join(run.Path, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return verb.BadInput(
			fmt.Errorf("%s has no %s, which --format=ns3 needs; run its scenario again with --set "+
				"measure.flows=true --set measure.pauses=true (%s was not set)", run.Path, name, key))
	}
	if err != nil {
		return verb.BadInput(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return verb.BadInput(err)
	}
	if err := read(f, st.Size()); err != nil {
		return verb.BadInput(fmt.Errorf("%s: %w", path, err))
	}
	return nil
}
