package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/ptr"
)

const noPatch = "the request is not patched"

func refusesWithReason(ctx context.Context, w Webhook) (string, error) {
	response, err := w.ask(ctx, nil)
	switch {
	case err != nil:
		return "", err
	case response.Allowed:
		return "not checked: the request is allowed", nil
	case response.Result == nil || response.Result.Message == "":
		return "", errors.New("the refusal has no status.message")
	case response.Result.Code < 400 || response.Result.Code > 599:
		return "", fmt.Errorf("the refusal has code %d", response.Result.Code)
	case len(response.Patch) > 0:
		return "", errors.New("the refusal has a patch")
	}
	return fmt.Sprintf("refused with code %d", response.Result.Code), nil
}

// patched returns the object before and after the patch; after is nil without a patch.
func (w Webhook) patched(ctx context.Context) (before, after []byte, patch jsonpatch.Patch, err error) {
	response, err := w.ask(ctx, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(response.Patch) == 0 {
		if response.PatchType != nil {
			return nil, nil, nil, fmt.Errorf("patchType %s without a patch: the API server refuses it", *response.PatchType)
		}
		return w.Request.Object.Raw, nil, nil, nil
	}
	if response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
		return nil, nil, nil, errors.New("a patch without patchType JSONPatch")
	}
	if patch, err = jsonpatch.DecodePatch(response.Patch); err != nil {
		return nil, nil, nil, fmt.Errorf("reading the patch: %w", err)
	}
	if after, err = patch.Apply(w.Request.Object.Raw); err != nil {
		return nil, nil, nil, fmt.Errorf("applying the patch: %w", err)
	}
	return w.Request.Object.Raw, after, patch, nil
}

func patchApplies(ctx context.Context, w Webhook) (string, error) {
	_, after, patch, err := w.patched(ctx)
	if err != nil || after == nil {
		return noPatch, err
	}
	return fmt.Sprintf("%d operations", len(patch)), nil
}

// patchIsMinimal applies all operations, and then all but one: each must matter.
func patchIsMinimal(ctx context.Context, w Webhook) (string, error) {
	before, after, patch, err := w.patched(ctx)
	if err != nil || after == nil {
		return noPatch, err
	}
	if jsonpatch.Equal(before, after) {
		return "", errors.New("the patch changes nothing")
	}
	for i := range patch {
		others := append(append(jsonpatch.Patch{}, patch[:i]...), patch[i+1:]...)
		if without, err := others.Apply(before); err == nil && jsonpatch.Equal(without, after) {
			text, _ := json.Marshal(patch[i])
			return "", fmt.Errorf("operation %s changes nothing", text)
		}
	}
	return "", nil
}

func patchIsIdempotent(ctx context.Context, w Webhook) (string, error) {
	_, after, _, err := w.patched(ctx)
	if err != nil || after == nil {
		return noPatch, err
	}
	response, err := w.ask(ctx, func(r *admissionv1.AdmissionRequest) { r.Object.Raw = after })
	if err != nil {
		return "", err
	}
	if len(response.Patch) > 0 {
		return "", fmt.Errorf("a patched object is patched once more: %s", response.Patch)
	}
	return "", nil
}

func isDeterministic(ctx context.Context, w Webhook) (string, error) {
	first, err := w.ask(ctx, nil)
	if err != nil {
		return "", err
	}
	for range 10 {
		next, err := w.ask(ctx, nil)
		if err != nil {
			return "", err
		}
		if err := w.equal(first, next); err != nil {
			return "", err
		}
	}
	return "", nil
}

func dryRunIsEqual(ctx context.Context, w Webhook) (string, error) {
	real, err := w.ask(ctx, func(r *admissionv1.AdmissionRequest) { r.DryRun = ptr.To(false) })
	if err != nil {
		return "", err
	}
	dry, err := w.ask(ctx, func(r *admissionv1.AdmissionRequest) { r.DryRun = ptr.To(true) })
	if err != nil {
		return "", err
	}
	return "", w.equal(real, dry)
}

// equal compares what becomes of the object: the order of operations does not count.
func (w Webhook) equal(a, b *admissionv1.AdmissionResponse) error {
	of := func(r *admissionv1.AdmissionResponse) ([]byte, error) {
		if len(r.Patch) == 0 {
			return w.Request.Object.Raw, nil
		}
		patch, err := jsonpatch.DecodePatch(r.Patch)
		if err != nil {
			return nil, fmt.Errorf("reading the patch: %w", err)
		}
		return patch.Apply(w.Request.Object.Raw)
	}
	first, err := of(a)
	if err != nil {
		return err
	}
	second, err := of(b)
	if err != nil {
		return err
	}
	if a.Allowed != b.Allowed || !bytes.Equal(first, second) && !jsonpatch.Equal(first, second) {
		return fmt.Errorf("allowed %t with patch %s, then allowed %t with patch %s", a.Allowed, a.Patch, b.Allowed, b.Patch)
	}
	return nil
}
