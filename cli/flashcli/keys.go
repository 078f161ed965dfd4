package flashcli

import (
	"fmt"
	"os"
	"strings"

	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/wire"
)

// readKeys reads the keys of NVMe hosts: in each line a host's name, its key and, optionally, the subsystem's key. A
// file that others can read is refused.
func readKeys(path string) (map[string]chap.Keys, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: other users can read it; chmod 600 %[1]s", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]chap.Keys{}
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		host := fields[0]
		switch _, twice := all[host]; {
		case len(fields) < 2 || len(fields) > 3:
			return nil, fmt.Errorf("%s:%d: %d words; give the name of a host, its key and, if it shall verify the "+
				"subsystem too, the subsystem's key", path, n, len(fields))
		case !wire.ValidName(host):
			return nil, fmt.Errorf("%s:%d: %q is no name of a host; it is in /etc/nvme/hostnqn of that host", path, n,
				host)
		case twice:
			return nil, fmt.Errorf("%s:%d: %s has a key already", path, n, host)
		}
		var k chap.Keys
		for i, to := range []*chap.Key{&k.Host, &k.Controller}[:len(fields)-1] {
			if *to, err = chap.ParseKey(fields[i+1]); err != nil {
				return nil, fmt.Errorf("%s:%d: word %d: %w; make one with: nvme gen-dhchap-key -m 1 -n %s", path, n, i+2, err,
					host)
			}
		}
		all[host] = k
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no key", path)
	}
	return all, nil
}
