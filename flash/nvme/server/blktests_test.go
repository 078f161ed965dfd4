package server_test

import (
	"archive/tar"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/nvme"
	"farflash/flash/nvme/chap"
	"farflash/flash/verbs/siwtest"
)

// Names that blktests and the target share.
const (
	blkSubsystem = "nqn.2026-01.example:blktests-1"
	blkUUID      = "91fdba0d-f87b-4c25-b80f-db7be1418b9e"
	blkHostID    = "0f01fb42-9f7f-4856-b0b3-51e60b8de349"
)

// blkPass are the tests of blktests' group nvme that pass; the results of blkTried are only shown.
var (
	blkPass = []string{"003", "004", "005", "006", "008", "010", "014", "018", "019", "021", "022", "023", "025", "026",
		"027", "028", "029", "031", "040", "041", "042", "043", "044", "045", "012"}
	blkTried = []string{"047", "057"} // the first does not parse Debian's version, the second sets up ports itself
)

// blkScript unpacks blktests in a machine of .ci/nvme and runs tests of its group nvme against the target. Keys
// that they would set in the kernel's own target are set in this one, which chooses hash and group by itself.
const blkScript = `
mkdir -p /run/blk && cd /run/blk
busybox wget -q -O - "$base/blktests.tar" | tar x
cat >control <<'END'
#!/bin/bash
case "$1 $2" in
"config --show-trtype") echo tcp ;;
"config --show-blkdev-type") echo device ;;
"config --show-hostnqn") echo nqn.2014-08.org.nvmexpress:uuid:@HOSTID@ ;;
"config --show-hostid") echo @HOSTID@ ;;
"config --show-host-traddr") echo 10.0.2.15 ;;
"config --show-traddr") echo 10.0.2.2 ;;
"config --show-trsvid") echo @PORT@ ;;
"config --show-subsys-uuid") echo @UUID@ ;;
"config --show-subsysnqn") echo @SUBSYSTEM@ ;;
*) busybox wget -q -O - --post-data "$* --size ${NVME_IMG_SIZE:-64M}" http://10.0.2.2:@CONTROL@/ ;;
esac
END
chmod +x control
cat >>tests/nvme/rc <<'END'
_set_nvmet_hostkey() { "$nvme_target_control" hostkey --hostnqn "$1" --hostkey "$2"; }
_set_nvmet_ctrlkey() { "$nvme_target_control" ctrlkey --hostnqn "$1" --ctrkey "$2"; }
_set_nvmet_hash() { :; }
_set_nvmet_dhgroup() { :; }
END
sed -i 's/blktests-subsystem-/nqn.2026-01.example:blktests-/' tests/nvme/031
mount -t configfs none /sys/kernel/config 2>/dev/null
modprobe -a nvme-tcp nvmet-tcp loop
test -x control || exit 1
export NVME_TARGET_CONTROL=/run/blk/control NVMET_TRTYPES=tcp NVMET_BLKDEV_TYPES=device NVME_IMG_SIZE=64M nvme_num_iter=2 TIMEOUT=15
for i in @TESTS@; do
	[ $i != 012 ] || export NVME_IMG_SIZE=400M
	./check nvme/$i </dev/null 2>&1 | cat
	cat results/nodev*/nvme/$i.out.bad results/nodev*/nvme/$i.dmesg 2>/dev/null | tail -n 20
	rm -rf results
done
echo "all tried"
`

// TestBlktests runs the group nvme of blktests, a copy of which FARFLASH_BLKTESTS names, with an unmodified Linux
// against the target.
func TestBlktests(t *testing.T) {
	dir := os.Getenv("FARFLASH_BLKTESTS")
	if dir == "" {
		t.Skip("FARFLASH_BLKTESTS is not set; set it to a folder with blktests, whose licence keeps it out of here")
	}
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	s := &http.Server{ReadHeaderTimeout: siwtest.Deadline, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err == nil {
				err = g.control(strings.Fields(string(b)))
			}
			asked.Add(1)
			if err != nil {
				t.Logf("control %s: %v", b, err)
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})}
	go func() { _ = s.Serve(l) }() // until Close
	t.Cleanup(func() { _ = s.Close() })
	_, control, _ := net.SplitHostPort(l.Addr().String()) // it is an address
	tests := slices.Concat(blkPass, blkTried)
	if only := os.Getenv("FARFLASH_BLKTESTS_ONLY"); only != "" {
		tests = strings.Fields(only)
	}
	script := strings.NewReplacer("@HOSTID@", blkHostID, "@PORT@", g.ports[0], "@CONTROL@", control, "@UUID@", blkUUID,
		"@SUBSYSTEM@", blkSubsystem, "@TESTS@", strings.Join(tests, " ")).Replace(blkScript)
	lines := siwtest.System(t, 40*time.Minute, script, map[string][]byte{"blktests.tar": all.Bytes()})
	result := regexp.MustCompile(`^nvme/(\d+).*\[(passed|failed|not run)\]`)
	found := map[string]string{}
	for line := range lines {
		t.Log(line)
		if m := result.FindStringSubmatch(line); m != nil {
			found[m[1]] = m[2]
		}
		if strings.HasPrefix(line, "all tried") {
			break
		}
	}
	if asked.Load() < 2*int32(len(tests)) { // set up and cleaned up; otherwise they ran against the kernel's own target
		t.Errorf("blktests asked the target only %d times", asked.Load())
	}
	for _, x := range tests {
		if found[x] != "passed" && slices.Contains(blkPass, x) {
			t.Errorf("nvme/%s: %s", x, found[x])
		}
	}
}

// control does what the script asks of the target: a verb and its options.
func (g *guest) control(words []string) error {
	option := map[string]string{}
	for i := 1; i+1 < len(words); i += 2 {
		option[words[i]] = words[i+1]
	}
	name := option["--subsysnqn"]
	key := func(option string) (chap.Key, error) {
		if option == "" {
			return chap.Key{}, nil
		}
		return chap.ParseKey(option)
	}
	host, err := key(option["--hostkey"])
	if err != nil {
		return err
	}
	own, err := key(option["--ctrkey"])
	if err != nil {
		return err
	}
	switch words[0] {
	case "setup":
		size, unit := uint64(0), ""
		if _, err := fmt.Sscanf(option["--size"], "%d%s", &size, &unit); err != nil || unit != "M" {
			return fmt.Errorf("size %s", option["--size"])
		}
		space := g.space(1, 0, size<<20)
		id, err := hex.DecodeString(strings.ReplaceAll(option["--subsys-uuid"], "-", ""))
		if err != nil || copy(space.UUID[:], id) != 16 {
			return fmt.Errorf("UUID %s", option["--subsys-uuid"])
		}
		g.blk = nvme.Subsystem{Name: name, Serial: "1", Namespaces: []nvme.Namespace{space}}
		if !host.Zero() {
			g.blk.Keys = map[string]chap.Keys{option["--hostnqn"]: {Host: host, Controller: own}}
		}
	case "hostkey", "ctrlkey":
		k := g.blk.Keys[option["--hostnqn"]]
		if words[0] == "hostkey" {
			k.Host = host
		} else {
			k.Controller = own
		}
		g.blk.Keys = map[string]chap.Keys{option["--hostnqn"]: k}
	case "cleanup":
		g.target.Remove(name)
		return nil
	default:
		return fmt.Errorf("no verb %s", words[0])
	}
	return g.target.Set(g.blk)
}
