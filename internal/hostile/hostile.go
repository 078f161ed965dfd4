// Package hostile is for tests that call an exported API with invalid arguments.
//
// Refused and Check distinguish a refusal, which is a panic with a message that names the package and the rule that the
// arguments break, from a fault: a panic of the Go runtime such as an index out of range. Code is a stream of numbers
// that a fuzz target turns into calls.
//
// It leaves out limits on time, which package patience has.
package hostile

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// Refused calls f and returns the message with which it refused its arguments, or "" if it returned. A panic that is
// no refusal of the package with the given name is an error of the test.
func Refused(t testing.TB, pkg string, f func()) (message string) {
	t.Helper()
	defer func() {
		t.Helper()
		r := recover()
		if r == nil {
			return
		}
		message = fmt.Sprint(r)
		_, fault := r.(runtime.Error)
		_, isError := r.(error)
		if fault || !isError && !strings.HasPrefix(message, pkg+": ") {
			t.Errorf("panic: %s\n%s", message, debug.Stack())
		}
	}()
	f()
	return ""
}

// Check returns a function that makes a call with invalid arguments, do, and reports it unless it fails as it should:
// with an error, or with a refusal of the package, that contains want.
func Check(t *testing.T, pkg string) func(name string, do func() error, want string) {
	return func(name string, do func() error, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			var err error
			got := Refused(t, pkg, func() { err = do() })
			if err != nil {
				got = err.Error()
			}
			switch {
			case t.Failed():
			case got == "":
				t.Error("the arguments are accepted")
			case !strings.Contains(got, want):
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// Code is a fuzzer's input, from which a target draws calls and arguments. Once it is used up, all draws are 0.
type Code []byte

// More reports whether any of the input is left.
func (c *Code) More() bool { return len(*c) > 0 }

// Byte draws a byte.
func (c *Code) Byte() byte {
	if len(*c) == 0 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return b
}

// Below draws a number from 0 to n-1.
func (c *Code) Below(n int) int { return int(c.Byte()) % n }

// Word draws any 64 bits.
func (c *Code) Word() (x uint64) {
	for range 8 {
		x = x<<8 | uint64(c.Byte())
	}
	return x
}

// edges are the numbers at which arithmetic and tables tend to fail.
var edges = [...]int64{0, 1, -1, 2, 7, 8, 255, 256, 511, 512, 4096, 65535, 65536, 1 << 20, 1<<31 - 1, 1 << 31,
	1<<32 - 1, 1 << 32, 1<<53 - 512, 1 << 54, 1<<62 - 1, 1<<63 - 512, 1<<63 - 1, -512, -1 << 31, -1 << 63}

// Int draws an integer: mostly a small one, which arguments are meant to be, else an edge, or any.
func (c *Code) Int() int64 {
	switch b := c.Byte(); {
	case b < 160:
		return int64(b % 16)
	case b < 240:
		return edges[c.Below(len(edges))]
	default:
		return int64(c.Word())
	}
}

// floats are the numbers at which comparisons and conversions tend to fail.
var floats = [...]float64{0, 1, -1, 0.5, 1e-9, 1e9, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300,
	math.SmallestNonzeroFloat64}

// Float draws a number, or what is none.
func (c *Code) Float() float64 {
	if b := c.Byte(); b < 128 {
		return float64(b) / 64
	}
	return floats[c.Below(len(floats))]
}

// Change changes up to n fields of the configuration that p points to: it sets them to numbers that are in range and
// that are not, and adds and removes optional parts.
func (c *Code) Change(p any, n int) {
	for range n {
		var list []reflect.Value
		leaves(reflect.ValueOf(p).Elem(), &list)
		if len(list) == 0 || !c.More() {
			return
		}
		c.set(list[(int(c.Byte())<<8|int(c.Byte()))%len(list)])
	}
}

// leaves appends the fields that set can change.
func leaves(v reflect.Value, list *[]reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				leaves(v.Field(i), list)
			}
		}
	case reflect.Array, reflect.Slice:
		if v.Kind() == reflect.Slice {
			*list = append(*list, v)
		}
		for i := range v.Len() {
			leaves(v.Index(i), list)
		}
	case reflect.Pointer:
		if *list = append(*list, v); !v.IsNil() {
			leaves(v.Elem(), list)
		}
	default:
		*list = append(*list, v)
	}
}

// set changes a field.
func (c *Code) set(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanInt():
		v.SetInt(c.Int())
	case v.CanUint():
		v.SetUint(uint64(c.Int()))
	case v.CanFloat():
		v.SetFloat(c.Float())
	case v.Kind() == reflect.String:
		v.SetString([]string{"", "x", "auto", "\x00"}[c.Below(4)])
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else {
			v.SetZero()
		}
	case v.Kind() == reflect.Slice:
		if c.Below(3) == 0 {
			v.SetZero()
		} else {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
	}
}
