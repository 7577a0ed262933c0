# Runs diwan on a copy of this machine's file system and prints what that
# changed. It runs in namespaces of its own for mounts, processes and networks.
#
#   footprint.sh DIR DIWAN NAME    DIR is an empty directory; /mnt/NAME becomes the home
set -eu
dir=$1 diwan=$2 home=/mnt/$3

mount -t tmpfs -o mode=755 none "$dir"
mkdir "$dir/lower" "$dir/upper" "$dir/work" "$dir/root"
cp "$diwan" "$dir/diwan"
mount -t overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" none "$dir/root"
for part in dev sys; do mount --rbind "/$part" "$dir/root/$part"; done
mount -t proc proc "$dir/root/proc"
mount -t tmpfs -o mode=1777 none "$dir/root/tmp"
# Others on this machine make and remove /run/secrets, which a copy cannot follow.
mount -t tmpfs -o mode=755 none "$dir/root/run"
mount --bind "$dir" "$dir/root/mnt"
mount --bind / "$dir/root/mnt/lower"
cd "$dir/root"
pivot_root . .
umount -l .
cd /mnt
ip link set lo up
diwan=/mnt/diwan

begin() {
	: >/mnt/log
	"$diwan" up --home "$home" >/mnt/log 2>&1 &
	server=$!
	until grep -q ready /mnt/log; do
		kill -0 "$server" || { cat /mnt/log >&2; exit 1; }
		sleep 0.1
	done
}

kubectl() { "$diwan" kubectl --home "$home" "$@"; }

ready() {
	kubectl wait --for=condition=Ready "$@" --timeout=5m >&2 || { kubectl describe "$@" >&2; tail -50 /mnt/log >&2; exit 1; }
}

pod() {
	cat <<POD
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  containers:
  - name: main
    image: diwan.dev/host
    command: [sleep, "1000"]
    resources: {requests: {cpu: 10m}, limits: {memory: 100Mi}}
    volumeMounts:
    - {name: scratch, mountPath: /opt/footprint/$1/scratch}
    - {name: scratch, mountPath: "/srv/with space/scratch"}
    - {name: settings, mountPath: /etc/footprint.conf, subPath: text}
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: settings, configMap: {name: settings}}
POD
}

begin
kubectl create configmap settings --from-literal=text=x >&2
pod killed | kubectl apply -f - >&2
pod stopped | kubectl apply -f - >&2
ready pod/killed pod/stopped
kill -KILL "$server"
wait "$server" || true
begin
kubectl delete pod killed >&2
ready pod/stopped
kill -TERM "$server"
wait "$server"

# A directory in which something was made and removed is in the upper layer, too.
cd /mnt/upper
find . -mindepth 1 \( ! -type d -o -empty \) | while read -r path; do
	if ! [ -d "$path" ] || ! [ -d "/mnt/lower/$path" ]; then echo "file $path"; fi
done
find /run -mindepth 1 -printf 'file %p\n'
ip -o link | awk '$2 != "lo:" { print "device", $2 }'
