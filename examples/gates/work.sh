#!/bin/sh
# Stands for a project's own programs: work.sh test|dry-run|deploy|end-to-end CHANGE.
# What it says depends on the change, so that each gate can be seen to open and to shut.
change=$2
case $1 in
test)
	if [ "$change" = "a slow fix" ]; then
		n=0; [ -f tmp/rounds ] && read -r n < tmp/rounds
		n=$((n + 1)); echo "$n" > tmp/rounds
		if [ "$n" -lt 3 ]; then echo "round $n: $((3 - n)) tests fail"; exit 1; fi
	fi
	if [ "$change" = "a lost cause" ]; then echo "round after round: the same 7 tests fail"; exit 1; fi
	echo "12 tests pass" ;;
dry-run)
	echo "would deploy: $change"
	if [ "$change" = "drop tables" ]; then echo "would drop table users"; fi
	if [ "$change" = "odd" ]; then echo "permissions of /etc would change"; fi ;;
deploy) echo "$change" > tmp/deployed; echo "deployed: $change" ;;
end-to-end)
	if [ "$change" = "breaks later" ]; then echo "3 of 9 end-to-end tests fail"; exit 1; fi
	echo "9 of 9 end-to-end tests pass" ;;
esac
