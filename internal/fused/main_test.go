package main

import (
	"strings"
	"testing"
)

// assembly is compiler output with a fused instruction that occurs twice, one of arm64, and lines that only look fused.
const assembly = `# farflash/model/fabric/cc
farflash/model/fabric/cc.expm1 STEXT size=221 args=0x8 locals=0x20 funcid=0x0 align=0x0
	0x0000 00000 (farflash/model/fabric/cc/fluid.go:165)	TEXT	farflash/model/fabric/cc.expm1(SB), ABIInternal, $32-8
	0x0086 00134 (farflash/model/fabric/cc/fluid.go:172)	VFMADD231SD	X2, X1, X0
	0x008a 00138 (farflash/model/fabric/cc/fluid.go:172)	VFMADD231SD	X2, X1, X0
	0x0090 00144 (farflash/model/fabric/cc/fluid.go:173)	MULSD	X2, X1
	0x0090 66 0f 2e c1 0f 87 a6 00 00 00 VFMADD 66 0f 2e 05 00 00 00  f.......f.......
# farflash/planner/tco [farflash/cmd/farflash]
farflash/planner/tco.better STEXT nosplit size=48 args=0x10 locals=0x0
	0x0004 00004 (farflash/planner/tco/allocate.go:172)	FNMSUBD	F1, F0, F2, F0
farflash/planner/tco.VFMADD STEXT nosplit size=48 args=0x10 locals=0x0
	0x0004 00004 (farflash/planner/tco/allocate.go:180)	CALL	farflash/planner/tco.VFMADD(SB)
`

func TestRead(t *testing.T) {
	found, functions, tail, err := read(strings.NewReader(assembly + "tco/tco.go:3:1: syntax error\n"))
	if err != nil || functions != 3 {
		t.Fatalf("%d functions, %v", functions, err)
	}
	want := []finding{
		{"farflash/model/fabric/cc", "farflash/model/fabric/cc.expm1", "farflash/model/fabric/cc/fluid.go:172",
			"VFMADD231SD"},
		{"farflash/planner/tco", "farflash/planner/tco.better", "farflash/planner/tco/allocate.go:172", "FNMSUBD"},
	}
	if len(found) != 2 || found[0] != want[0] || found[1] != want[1] {
		t.Errorf("%v, want %v", found, want)
	}
	if len(tail) != 1 || tail[0] != "tco/tco.go:3:1: syntax error" {
		t.Errorf("errors %q", tail)
	}
}

func TestRules(t *testing.T) {
	r, err := parse("# why\npackage farflash/report: for people\n\nfunction farflash/planner/tco.better: a " +
		"tie\nfunction farflash/planner/tco.gone: was there")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"farflash/report": true, "farflash/report/chart": true,
		"farflash/reports": false, "farflash/planner/tco": false} {
		if r.free(path) != want {
			t.Errorf("%s is free: %v", path, !want)
		}
	}
	if !r.allow(finding{function: "farflash/planner/tco.better"}) ||
		r.allow(finding{function: "farflash/planner/tco.betterThan"}) {
		t.Error("a function is freed by its whole name")
	}
	if !r[0].used || !r[1].used || r[2].used {
		t.Error("which lines are needed is not known")
	}
	for _, bad := range []string{"package farflash/report", "package farflash/report: ", "farflash/report: draws"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestAllowed verifies that allowed.txt parses.
func TestAllowed(t *testing.T) {
	if _, err := parse(allowed); err != nil {
		t.Error(err)
	}
}
