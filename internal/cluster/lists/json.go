package lists

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// jsonLists lists Longhorn's objects, which the API server serves only as JSON. A
// single engine may have hundreds of snapshots in its status. The decoder skips
// fields that the Go type does not have.
type jsonLists struct {
	api        rest.Interface
	mapper     meta.RESTMapper
	scheme     *runtime.Scheme
	parameters runtime.ParameterCodec
}

func (j *jsonLists) reads(list client.ObjectList) bool {
	gvk, err := apiutil.GVKForObject(list, j.scheme)
	return err == nil && gvk.GroupVersion() == longhorn.GroupVersion
}

func (j *jsonLists) each(ctx context.Context, list client.ObjectList, visit func(runtime.Object) error, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, j.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	mapping, err := j.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	field, _ := reflect.TypeOf(list).Elem().FieldByName("Items")
	return eachStreamed(ctx, j.api, j.parameters, mapping.Resource.Resource, options, nil,
		func(body io.Reader) (string, error) { return decodeList(body, field.Type.Elem(), visit) })
}

// eachStreamed requests page after page, and decodes each page while receiving it.
func eachStreamed(ctx context.Context, api rest.Interface, parameters runtime.ParameterCodec, resource string, options []client.ListOption,
	adjust func(*rest.Request) *rest.Request, decode func(io.Reader) (next string, _ error),
) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	for {
		o.Limit = LargePage
		request := api.Get().NamespaceIfScoped(o.Namespace, o.Namespace != "").Resource(resource).VersionedParams(o.AsListOptions(), parameters)
		if adjust != nil {
			request = adjust(request)
		}
		body, err := request.Stream(ctx)
		if err != nil {
			return err
		}
		o.Continue, err = decode(body)
		_ = body.Close()
		if err != nil {
			return fmt.Errorf("reading a page of %s: %w", resource, err)
		}
		if o.Continue == "" {
			return nil
		}
	}
}

// lenient options suit lists, which the API server has validated. They skip owners and
// managed fields: no rule reads them, and managed fields are most of the metadata.
var lenient = jsonv2.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *[]metav1.ManagedFieldsEntry) error { return d.SkipValue() }),
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *[]metav1.OwnerReference) error { return d.SkipValue() }),
	)),
)

// decodeList visits the items of a JSON list, and returns the continue token of the next page.
func decodeList(body io.Reader, item reflect.Type, visit func(runtime.Object) error) (next string, err error) {
	d := jsontext.NewDecoder(body, lenient)
	err = eachName(d, func(name string) error {
		switch name {
		case "metadata":
			var about struct {
				Continue string `json:"continue"`
			}
			err := jsonv2.UnmarshalDecode(d, &about)
			next = about.Continue
			return err
		case "items":
			return eachItem(d, func() error {
				o := reflect.New(item).Interface()
				if err := jsonv2.UnmarshalDecode(d, o, lenient); err != nil {
					return err
				}
				return visit(o.(runtime.Object))
			})
		}
		return d.SkipValue()
	})
	return next, err
}

// eachName calls read for each name of a JSON object; read consumes the value.
func eachName(d *jsontext.Decoder, read func(name string) error) error {
	if start, err := d.ReadToken(); err != nil {
		return err
	} else if start.Kind() != '{' {
		return fmt.Errorf("not an object: %s", start)
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := read(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// eachItem calls read for each value of a JSON array; read consumes the value. null is an empty array.
func eachItem(d *jsontext.Decoder, read func() error) error {
	start, err := d.ReadToken()
	if err != nil || start.Kind() == 'n' {
		return err
	}
	if start.Kind() != '[' {
		return fmt.Errorf("not a list: %s", start)
	}
	for d.PeekKind() != ']' {
		if err := read(); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}
