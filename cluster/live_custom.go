package cluster

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

	"github.com/fairlead-io/fairlead/cluster/longhorn"
)

// customReader lists custom resources, which the API server has only as JSON.
// An engine alone may have hundreds of snapshots in its status: whatever its Go
// type has no field for is skipped while it arrives.
type customReader struct {
	api        rest.Interface
	mapper     meta.RESTMapper
	scheme     *runtime.Scheme
	parameters runtime.ParameterCodec
}

func (c *customReader) reads(list client.ObjectList) bool {
	gvk, err := apiutil.GVKForObject(list, c.scheme)
	return err == nil && gvk.GroupVersion() == longhorn.GroupVersion
}

func (c *customReader) each(ctx context.Context, list client.ObjectList, visit func(runtime.Object) error, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	items := reflect.TypeOf(list).Elem()
	field, _ := items.FieldByName("Items")
	var o client.ListOptions
	o.ApplyOptions(options)
	for {
		o.Limit = largePage
		request := c.api.Get().NamespaceIfScoped(o.Namespace, mapping.Scope.Name() == meta.RESTScopeNameNamespace).
			Resource(mapping.Resource.Resource).VersionedParams(o.AsListOptions(), c.parameters)
		if o.Continue, err = streamPage(ctx, request, field.Type.Elem(), visit); err != nil || o.Continue == "" {
			return err
		}
	}
}

func streamPage(ctx context.Context, request *rest.Request, item reflect.Type, visit func(runtime.Object) error) (next string, err error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	if next, err = decodeList(body, item, visit); err != nil {
		return "", fmt.Errorf("reading a list of %s: %w", item.Name(), err)
	}
	return next, nil
}

// lenient: the API server has checked what it sends. Managed fields are most of
// an object's metadata, and nobody reads them.
var lenient = jsonv2.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *[]metav1.ManagedFieldsEntry) error { return d.SkipValue() })),
)

// decodeList visits the items of a list in JSON, and returns where the next page begins.
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

// eachName calls for each name of an object, to read its value.
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

// eachItem calls for each value of an array, to read it. null is an empty one.
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
