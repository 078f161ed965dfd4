package nvmetest

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

var (
	remark   = regexp.MustCompile(`#.*`)
	repeated = regexp.MustCompile(`([0-9a-f]{2})\*(\d+)`)
)

// Hex decodes bytes as files of tests have them: NN*COUNT repeats a byte, and a remark begins with #.
func Hex(text string) ([]byte, error) {
	text = repeated.ReplaceAllStringFunc(remark.ReplaceAllString(text, ""), func(s string) string {
		n, err := strconv.Atoi(s[3:])
		if err != nil || n > 1<<20 {
			return s // which is no hexadecimal number
		}
		return strings.Repeat(s[:2], n)
	})
	return hex.DecodeString(strings.Join(strings.Fields(text), ""))
}
