package shape

import (
	"reflect"

	"farflash/numeric/units"
)

// Differs lists the keys with different values in two structs of one type, in the order of the keys. A list counts as
// one value.
func (l *Language) Differs(a, b any) []string {
	return l.differs(reflect.Indirect(reflect.ValueOf(a)), reflect.Indirect(reflect.ValueOf(b)), "", nil)
}

func (l *Language) differs(a, b reflect.Value, path string, out []string) []string {
	for _, f := range l.fields(a.Type()) {
		x, y, at := a.FieldByIndex(f.index), b.FieldByIndex(f.index), units.JoinPath(path, f.key)
		switch {
		case f.typ.Kind() == reflect.Struct && !f.typ.Implements(textMarshaler):
			out = l.differs(x, y, at, out)
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			out = append(out, at)
		}
	}
	return out
}
