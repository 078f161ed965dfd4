#!/bin/busybox sh
# Runs in the machine of .ci/nvme. busybox prefers its own programs, unless they are named by their path. The tests in flash/nvme/server read its output: a step that fails ends it.
set -eu
name=nqn.2026-01.example:disk
attach() {
	nvme connect -t tcp -a 10.0.2.2 -s "$1" -n $name --nr-io-queues=2 --reconnect-delay=1 --ctrl-loss-tmo=120 ${2-}
}
node() { # the block device, as soon as there is one
	for i in $(seq 100); do
		disk=$(ls /dev | grep -E '^nvme[0-9]+n1$' || true)
		[ -z "$disk" ] || break
		sleep 0.1
	done
	disk=/dev/$disk
}
verify() { # fio writes and verifies while the test does its worst
	echo "verifying"
	fio --name=verify --filename=$disk --rw=randwrite --bsrange=4k-128k --size=24m --io_size=36m --offset_increment=32m \
		--ioengine=libaio --iodepth=16 --numjobs=2 --verify=crc32c --verify_backlog=64 --direct=1 --thinktime=10ms \
		--thinktime_blocks=8 --max_latency=30s --output=/dev/shm/fio
	grep -E 'err=|IOPS' /dev/shm/fio
	[ "$(grep -c 'err= 0' /dev/shm/fio)" = 2 ]
	echo "verified"
}
case $1 in
basic)
	nvme discover -t tcp -a 10.0.2.2 -s "$2"
	attach "$2" "--hdr-digest --data-digest"
	node
	nvme list-subsys
	nvme id-ctrl /dev/nvme0 >/dev/null
	nvme id-ns $disk | grep -E 'nsze|lbaf'
	nvme smart-log /dev/nvme0 | grep host_
	nvme ana-log /dev/nvme0 | grep state
	nvme error-log /dev/nvme0 >/dev/null
	nvme fw-log /dev/nvme0 >/dev/null
	nvme get-feature /dev/nvme0 -f 7
	verify
	mkfs.ext4 -q $disk
	mount -t ext4 -o discard $disk /mnt
	cp /bin/fio /mnt/
	cmp /bin/fio /mnt/fio
	rm /mnt/fio
	sync
	/bin/fstrim -v /mnt
	umount /mnt
	e2fsck -fn $disk
	/bin/blkdiscard -f -z -l 8388608 $disk
	/bin/blkdiscard -f -l 8388608 $disk
	dd if=/dev/zero of=/dev/shm/zeros bs=4096 count=1
	nvme flush $disk -n 1
	nvme write-zeroes $disk -s 0 -c 7
	nvme dsm $disk -d -s 0 -b 8
	nvme compare $disk -s 0 -c 7 -z 4096 -d /dev/shm/zeros
	nvme verify $disk -s 0 -c 7
	size=$(cat /sys/block/"$(basename $disk)"/size)
	echo "grow, $size blocks"
	for i in $(seq 100); do
		now=$(cat /sys/block/"$(basename $disk)"/size)
		[ "$now" = "$size" ] || break
		sleep 0.1
	done
	echo "grown to $now blocks"
	nvme reset /dev/nvme0
	dd if=$disk of=/dev/null bs=1M count=4
	;;
keys) # with the name of the subsystem, the host's key and the subsystem's
	name=$3
	secret=$4
	subsystem=$5
	echo "kernel $(uname -r)"
	if attach "$2" "--dhchap-secret=$subsystem"; then # not the host's key
		echo "a wrong key was accepted"
		exit 1
	fi
	attach "$2" "--dhchap-secret=$secret --dhchap-ctrl-secret=$subsystem"
	node
	dd if=$disk of=/dev/null bs=1M count=4
	nvme disconnect -n $name
	attach "$2" "--dhchap-secret=$secret"
	node
	dd if=$disk of=/dev/null bs=1M count=4
	echo "proved"
	;;
kills) # with the name of the subsystem and the seconds that the test needs; what is durable is verified
	trap '' PIPE # the kernel sends it to whoever submits I/O when the connection is lost
	name=$3
	attach "$2"
	node
	echo "verifying"
	fio --name=verify --filename=$disk --rw=randwrite --bsrange=4k-64k --size=24m --offset_increment=32m --sync=1 \
		--time_based --runtime="$4" --ioengine=libaio --iodepth=16 --numjobs=2 --verify=crc32c --verify_backlog=64 --direct=1 \
		--max_latency=60s --output=/dev/shm/fio --eta=never || {
		cat /dev/shm/fio
		dmesg | tail -n 40
		exit 1
	}
	grep -E 'err=|IOPS' /dev/shm/fio
	[ "$(grep -c 'err= 0' /dev/shm/fio)" = 2 ]
	echo "verified"
	echo "reconnected $(dmesg | grep -c 'Successfully reconnected') times"
	mkfs.ext4 -q $disk
	e2fsck -fn $disk
	;;
drops)
	attach "$2"
	node
	verify
	dmesg | grep -c 'Successfully reconnected'
	;;
paths)
	nvme connect-all -t tcp -a 10.0.2.2 -s "$2" --nr-io-queues=2 --reconnect-delay=1
	node
	nvme list-subsys
	[ "$(nvme list-subsys | grep -c live)" = 2 ]
	verify
	;;
esac
nvme disconnect -n $name
