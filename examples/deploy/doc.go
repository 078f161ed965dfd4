// Package deploy contains files with which the daemon of farflash flash serve runs unattended: a config, a unit of
// systemd and manifests for Kubernetes. Its test runs the daemon as each of them does, with other paths and ports.
package deploy
