package playbook

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// What is between the lines is read as a shell reads it, so each line is one
// command in the words that a playbook would have.
const destructiveCommands = `
rm -rf build
rm -fr -- /srv/www
rm -r tmp/../src
rm -f *.db
/bin/rm -rf /
sudo rm -rf /var/lib/x
sudo -u root -- rm -rf /var/lib/x
env -i A=b PATH=/bin rm -rf x
nice -n 10 ionice -c 3 rm -rf x
timeout -k 5 30 rm -rf x
nohup setsid rm -rf x
xargs -0 -n 1 rm -rf
xargs -I {} sh -c 'rm -rf {}'
busybox rm -rf x
find . -name '*.log' -delete
find . -type d -exec rm -rf {} +
sh -c 'rm -rf x'
bash -lc 'cd /srv && rm -rf x'
bash -e -c 'if true; then rm -rf x; fi'
sh -c "sh -c 'sh -c \"rm -rf x\"'"
sh -c 'echo x | xargs rm -rf'
sh -c '$(rm -rf x)'
sh -c 'r\m -rf x'
sh -c 'cat x > /dev/sda'
sh -c 'rm -rf "$DIR"'
su -c 'rm -rf x' root
ssh -i key -p 22 host 'rm -rf x'
ssh host rm -rf x
eval 'rm -rf x'
env -S 'rm -rf x'
docker exec -it web rm -rf /srv
kubectl exec pod -- rm -rf /srv
git push --force
git push -f origin main
git push origin +main
git push origin :main
git push --force-with-lease=main
git -C repo reset --hard HEAD~1
git clean -fdx
git branch -D main
kubectl delete ns web
kubectl --context prod -n web delete pod a
kubectl drain node-1
helm uninstall web
terraform destroy
terraform apply -auto-approve
terraform -chdir=prod apply -destroy
tofu state rm a.b
pulumi destroy --yes
aws s3 rm s3://bucket --recursive
aws ec2 terminate-instances --instance-ids i-1
aws iam attach-user-policy --user-name a
gcloud compute instances delete a
az group delete -n a
docker system prune -af
docker volume rm data
gh repo delete a/b --yes
gh pr merge 3
curl -X DELETE https://api.example/x
curl -XDELETE https://api.example/x
curl -sSfX delete https://api.example/x
curl --request=DELETE https://api.example/x
wget --method=DELETE https://api.example/x
http DELETE api.example/x
psql -c 'DROP TABLE users'
psql -h db --command='truncate users'
psql -c 'delete from users'
psql -c 'update users set admin = true'
psql -c 'DROP/* really */TABLE users'
mysql -e 'alter table users drop column name'
psql -c 'GRANT ALL ON users TO eve'
sqlite3 app.db 'drop table users'
dropdb production
redis-cli FLUSHALL
mongosh --eval 'db.dropDatabase()'
npm publish
cargo publish
twine upload dist/x.whl
dd if=/dev/zero of=/dev/sda
mkfs.ext4 /dev/sdb1
shred x
shutdown -h now
systemctl disable web
userdel eve
passwd root
iptables -F
crontab -r
chmod -R 777 /
rsync -a --delete a/ b/
truncate -s 0 app.db
stripe refunds create --charge ch_1
rails db:drop
`

const harmlessCommands = `
./deploy --dry-run
rm tmp/x
rm -rf tmp/build
rm -rf ./tmp/build tmp/other
git push origin main
git status
git log --oneline
git reset HEAD~1
kubectl get pods
kubectl diff -f x.yaml
terraform plan -out=x
helm template web
aws s3 cp a s3://bucket/a
aws iam list-users
docker build .
docker run --rm image ./test
curl https://api.example/x
curl -X POST https://api.example/delete
curl -o out https://api.example/DELETE
psql -c 'select * from users'
psql -c 'delete from users where id = 3'
psql -c 'update users set seen = now() where id = 3'
psql -c 'select dropped from truncated_users'
sqlite3 app.db .dump
redis-cli GET x
npm run build
npm test
npm ci
cargo build
dd if=a of=b
find . -name '*.go'
sh -c 'echo rm -rf x'
echo rm -rf /
grep -r 'DROP TABLE' .
chmod -R u+x tmp/tools
systemctl status web
make test
printf '%s' 'kubectl delete ns web'
rsync -a a/ b/
gh pr view 3
timeout 30 ./test
sudo ./probe
xargs -n 1 echo
`

// words reads a line into the words of a command.
func words(t *testing.T, line string) []arg {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		t.Fatalf("%s: %v", line, err)
	}
	return wordsOf(file.Stmts[0].Cmd.(*syntax.CallExpr).Args)
}

func TestDestructiveCommands(t *testing.T) {
	for line := range strings.SplitSeq(strings.TrimSpace(destructiveCommands), "\n") {
		if why := destroys(words(t, line)); why == "" {
			t.Errorf("%s: nothing is said", line)
		}
	}
}

func TestHarmlessCommands(t *testing.T) {
	for line := range strings.SplitSeq(strings.TrimSpace(harmlessCommands), "\n") {
		if why := destroys(words(t, line)); why != "" {
			t.Errorf("%s: %s", line, why)
		}
	}
}

// What is not known before it runs does not make a command harmless, and a text
// that is nested without end does not take long.
func TestUnknownArguments(t *testing.T) {
	if why := destroys([]arg{{"rm", true}, {"-rf", true}, {"", false}}); why == "" {
		t.Error("rm -rf of an expression passes")
	}
	deep := "rm -rf x"
	for range 40 {
		deep = "sudo " + deep
	}
	if why := destroys(words(t, deep)); why == "" {
		t.Error("what is wrapped forty times passes")
	}
}

// A matcher never fails on what it cannot read.
func FuzzDestroys(f *testing.F) {
	for line := range strings.SplitSeq(destructiveCommands+harmlessCommands, "\n") {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 2000 {
			return
		}
		bare := shellDestroys(line, maxNesting)
		if bare == "" {
			return
		}
		if file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), ""); err != nil || len(file.Stmts) == 0 {
			return
		}
		// What destroys does so inside a shell that sudo starts, too.
		if destroys([]arg{{"sudo", true}, {"sh", true}, {"-c", true}, {line, true}}) == "" && !strings.HasPrefix(line, "-") {
			t.Errorf("%q destroys, and not in sh -c", line)
		}
	})
}
