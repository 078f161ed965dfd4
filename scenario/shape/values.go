package shape

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
)

// ValueDescription describes one of the words that a key accepts.
type ValueDescription struct {
	Word string // as it is written
	Doc  string // its meaning
}

// Enumerations lists the enumeration types of a file whose type whole points to, such as a policy's.
func (l *Language) Enumerations(whole any) []reflect.Type {
	var list []reflect.Type
	for _, s := range l.Structs(whole) {
		for i := range s.NumField() {
			f := s.Field(i)
			t := f.Type
			for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
				t = t.Elem()
			}
			if f.IsExported() && l.Keys[s.String()+"."+f.Name] != "-" && len(wordsOf(t)) > 0 &&
				!slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list
}

// wordsOf lists the words of an enumeration, by value; "" is a value without one. For other types it returns none.
func wordsOf(t reflect.Type) []string {
	if t.Kind() != reflect.Uint8 || !isText(t) || !t.Implements(textMarshaler) {
		return nil
	}
	var words []string
	for i := range uint64(64) {
		v := reflect.New(t).Elem()
		v.SetUint(i)
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil && len(words) > 0 {
			break
		}
		words = append(words, string(text)) // the first value may have none
	}
	return words
}

// describeValues describes each of a type's words if all of them have a comment; otherwise the key's own comment
// describes them.
func (l *Language) describeValues(t reflect.Type, parent reflect.Type) []ValueDescription {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	var list []ValueDescription
	for i, word := range wordsOf(t) {
		if word == "" {
			continue
		}
		doc := l.inKeys(l.lookUp(t.String()+"="+strconv.Itoa(i)), parent)
		if doc == "" {
			return nil
		}
		list = append(list, ValueDescription{Word: word, Doc: doc})
	}
	return list
}
