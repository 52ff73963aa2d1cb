package admission

import (
	"bytes"
	"net/http"
	"reflect"
)

// Memory of a review, measured by TestDecodedReviewsTakeNoMoreThanIsCounted.
const (
	// requestCost is what a request takes beside its body, and the buffer that is kept for small ones.
	requestCost = 16 << 10
	// valueCost is what decoding takes at most for each comma or brace: measured 180 bytes for a name in a map, and
	// 250 for {} in a list of 72 bytes each while the list grows. A pod of 12 KiB has 650 of them.
	valueCost = 160
	// entryCost is what an entry of a map takes beside its key and value, and the copies that rules make.
	entryCost = 160
)

// bodySize is how much of a body is read at most. The API server always sends the length.
func bodySize(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return MaxBody
	}
	return min(r.ContentLength, MaxBody)
}

// decodingCost bounds what it takes to decode a body, beside the body.
func decodingCost(body []byte) int64 {
	return valueCost * int64(bytes.Count(body, []byte{','})+bytes.Count(body, []byte{'{'}))
}

// structure is what a view takes beside its strings, which are no longer than the body.
func structure(v reflect.Value) (size int64) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			size = int64(v.Type().Elem().Size()) + structure(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			size += structure(v.Field(i))
		}
	case reflect.Slice:
		size = int64(v.Cap()) * int64(v.Type().Elem().Size())
		if kind := v.Type().Elem().Kind(); kind != reflect.Struct && kind != reflect.Pointer {
			break // text
		}
		for i := range v.Len() {
			size += structure(v.Index(i))
		}
	case reflect.Map:
		size = int64(v.Len()) * (entryCost + int64(v.Type().Elem().Size()))
	}
	return size
}
