package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"farflash/flash/verbs/siwtest"
)

// underSystemd installs the daemon as the how-to says, and takes it through what a server goes through. Each step that
// fails ends it. Memory locked for io_uring, the hardened unit and a user without rights are systemd's own.
const underSystemd = `set -eu
get() { busybox wget -q -O "$2" "$base/$1"; }
wanted() { # a state, within a minute
	for _ in $(seq 120); do
		[ "$(systemctl show -p $1 --value farflash)" != "$2" ] || return 0
		sleep 0.5
	done
	echo "farflash: $1 is not $2"
	systemctl status farflash || true
	journalctl -u farflash --no-pager | tail -n 30
	exit 1
}
get farflash /usr/local/bin/farflash
chmod 755 /usr/local/bin/farflash
mkdir -p /etc/farflash
get farflash.yaml /etc/farflash/farflash.yaml
get farflash.service /etc/systemd/system/farflash.service
systemctl daemon-reload
systemctl enable --now farflash
wanted ActiveState active
first=$(systemctl show -p MainPID --value farflash)
echo "runs as $(ps -o user= -p "$first"), $(systemctl show -p StatusText --value farflash)"
busybox wget -q -O - http://127.0.0.1:9701/readyz
ls -l /var/lib/private/farflash/pool.img
journalctl -u farflash --no-pager | grep -o 'over io_uring'
sed -i 's/disk: 50GiB/disk: 50GiB\n  more: 1GiB/' /etc/farflash/farflash.yaml
systemctl reload farflash
wanted ActiveState active
journalctl -u farflash --no-pager | grep 'new export'
[ "$(systemctl show -p MainPID --value farflash)" = "$first" ]
kill -9 "$first"
for _ in $(seq 120); do
	[ "$(systemctl show -p MainPID --value farflash)" = "$first" ] || break
	sleep 0.5
done
wanted ActiveState active
wanted NRestarts 1
journalctl -u farflash --no-pager | grep 'recovered after a crash'
systemctl stop farflash
wanted ActiveState inactive
wanted Result success
journalctl -u farflash --no-pager | grep 'everything is on the devices'
echo "stopped as it should"
`

// TestUnderSystemd runs the unit under a real systemd, in a machine of .ci/nvme: installed, started, reloaded, killed
// and stopped.
func TestUnderSystemd(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range []string{"farflash.yaml", "farflash.service"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	if os.Getenv("FARFLASH_NVME") != "" {
		path := filepath.Join(t.TempDir(), "farflash")
		cmd := exec.Command("go", "build", "-pgo=off", "-ldflags=-s -w", "-o", path, "farflash/cmd/farflash")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files["farflash"] = b
	}
	lines := siwtest.System(t, 9*time.Minute, underSystemd, files)
	t.Logf("runs as %s", siwtest.Until(t, lines, "runs as "))
	siwtest.Until(t, lines, "stopped as it should")
	if end := siwtest.Until(t, lines, "ends: "); end != "0" {
		t.Errorf("the script ends with %s", end)
	}
}
