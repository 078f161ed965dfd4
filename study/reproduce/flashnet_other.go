//go:build !linux

package reproduce

import (
	"context"
	"fmt"
	"runtime"
)

// runFlashnet returns an error on systems without the real stack.
var runFlashnet = map[string]func(context.Context, Options) (*Report, error){
	"fig1": noFlash, "fig8": noFlash, "table2": noFlash, "table3": noFlash, "latency": noFlash, "bandwidth": noFlash,
	"fig9": noFlash, "waf": noFlash,
}

func noFlash(context.Context, Options) (*Report, error) {
	return nil, fmt.Errorf("the real stack needs Linux (io_uring, O_DIRECT), and this is %s", runtime.GOOS)
}
