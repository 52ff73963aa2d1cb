package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// follow keeps a folder like a kubelet keeps a Secret or ConfigMap volume:
// replaced as a whole when the object changes, by a link that is moved.
func (s *Sandbox) follow(ctx context.Context, v corev1.Volume, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making volume %s: %w", v.Name, err)
	}
	version, err := s.project(ctx, v, folder, "")
	if err != nil {
		return err
	}
	list, name := client.ObjectList(&corev1.SecretList{}), ""
	switch {
	case v.Secret != nil:
		name = v.Secret.SecretName
	case v.ConfigMap != nil:
		list, name = &corev1.ConfigMapList{}, v.ConfigMap.Name
	default:
		return nil // it never changes
	}
	go changes.Follow(ctx, s.Client, func() {
		if newer, err := s.project(ctx, v, folder, version); err == nil {
			version = newer
		}
	}, []client.ObjectList{list}, client.InNamespace(registration.Namespace), client.MatchingFields{"metadata.name": name})
	return nil
}

// project writes the volume if its object has another version than the one given.
func (s *Sandbox) project(ctx context.Context, v corev1.Volume, folder, have string) (string, error) {
	files, version, err := s.contents(ctx, v)
	if err != nil || version == have {
		return version, err
	}
	data, err := os.MkdirTemp(folder, "..data-")
	if err != nil {
		return have, fmt.Errorf("writing volume %s: %w", v.Name, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(data, name), content, 0o600); err != nil {
			return have, fmt.Errorf("writing volume %s: %w", v.Name, err)
		}
		link := filepath.Join(folder, name)
		if _, err := os.Lstat(link); err != nil {
			if err := os.Symlink(filepath.Join("..data", name), link); err != nil {
				return have, fmt.Errorf("writing volume %s: %w", v.Name, err)
			}
		}
	}
	next := filepath.Join(folder, "..next")
	if err := os.Symlink(filepath.Base(data), next); err != nil {
		return have, fmt.Errorf("writing volume %s: %w", v.Name, err)
	}
	if err := os.Rename(next, filepath.Join(folder, "..data")); err != nil {
		return have, fmt.Errorf("writing volume %s: %w", v.Name, err)
	}
	return version, nil
}

// contents reads the object behind a volume. A Secret that is not there yet is
// waited for by its readers.
func (s *Sandbox) contents(ctx context.Context, v corev1.Volume) (map[string][]byte, string, error) {
	files := map[string][]byte{}
	switch {
	case v.ConfigMap != nil:
		var c corev1.ConfigMap
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: registration.Namespace, Name: v.ConfigMap.Name}, &c); err != nil {
			return nil, "", fmt.Errorf("reading ConfigMap %s: %w", v.ConfigMap.Name, err)
		}
		for name, text := range c.Data {
			files[name] = []byte(text)
		}
		return files, c.ResourceVersion, nil
	case v.Secret != nil:
		var secret corev1.Secret
		err := s.Client.Get(ctx, client.ObjectKey{Namespace: registration.Namespace, Name: v.Secret.SecretName}, &secret)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, "", fmt.Errorf("reading Secret %s: %w", v.Secret.SecretName, err)
		}
		return secret.Data, secret.ResourceVersion, nil
	}
	return files, "", nil
}
