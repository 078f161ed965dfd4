// Package notify sends the states of a daemon to the service manager that started it, by the protocol of sd_notify(3):
// a datagram to the Unix socket that the variable NOTIFY_SOCKET names. Without a manager, it does nothing.
package notify

import (
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Ready, Reloading and Stopping report that the daemon serves, reads its files again, and ends. status is a line for
// people.
func Ready(status string) error { return send("READY=1\nSTATUS=" + line(status)) }

// Reloading must be followed by Ready.
func Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	return send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000))
}

// Stopping ends what the manager expects of the daemon.
func Stopping() error { return send("STOPPING=1") }

func line(s string) string { return strings.ReplaceAll(s, "\n", " ") }

// send sends a state.
func send(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	// An abstract socket begins with @, as package net writes it too.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("the service manager cannot be reached: %w", err)
	}
	defer func() { _ = c.Close() }() // the datagram is on its way
	if _, err = c.Write([]byte(state)); err != nil {
		return fmt.Errorf("the service manager cannot be reached: %w", err)
	}
	return nil
}
